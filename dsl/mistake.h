// HEDDLE_MISTAKE("text"): marks a function that exists only to refuse a common mistake. A call of
// it is a compile error at that line, with the text: the reason, and what to write instead.
//
// A deleted function would be refused as well, but without a text; a static_assert has one, but is
// reported at Heddle's line. Such functions have no definition.
#pragma once

#define HEDDLE_MISTAKE(text) __attribute__((unavailable(text)))
