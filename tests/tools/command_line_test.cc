// The command as a whole: its subcommands, plug-ins, embedding, streams, and misuse.
#include "heddle/tools/command_line.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "nlohmann/json.hpp"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using codegen::write_file;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kCommands[] =
    "commands: list, env, cache, run, build, warm, tune, bench, profile, dump, explain, opt, "
    "passes, "
    "reference, "
    "layout "
    "('heddle "
    "--help' "
    "explains "
    "them)";

TEST(ListTest, ShowsKernelsWithTheirSettings) {
  const Outcome list = heddle_command({"list"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("row_sum              y(r) = the sum of row r of x, in f32\n"
                                  "  --set dtype=f32  element type of x (f32, f16, bf16)\n"));
  EXPECT_EQ(list.err, "");
}

// What depends on settings is said with them.
TEST(ListTest, ShowsWhatAKernelTakes) {
  Outcome list = heddle_command({"list", "gemm"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, StartsWith("gemm                 d = epilogue(alpha a b + beta c) on "));
  for (const char* line :
       {"  --set dtype=f16  element type of a and b (f16, bf16, tf32, e4m3)\n",
        "  --set layout=tn  of the files of a and b, by CuTe's letters: a is [m, k] for t and [k, "
        "m] "
        "for n, b is [n, k] for n and [k, n] for t (tn, tt, nn, nt)\n",
        "  --in a=FILE  dtype[k, m] if layout=nn|nt\n  --in a=FILE  dtype[m, k] otherwise\n",
        "  --in b=FILE  dtype[k, n] if layout=tt|nt\n  --in b=FILE  dtype[n, k] otherwise\n",
        "  --out d=FILE  out[m, n]\n  --in c=FILE  out[m, n] if beta!=0\n",
        "  --in bias=FILE  f32[n] if epilogue=bias|", "  --size k=4096  where no input tells it\n",
        "  not dtype=tf32|e4m3 and layout=tt|nn|nt: the tensor cores read operands that are "}) {
    EXPECT_THAT(list.out, HasSubstr(line));
  }
  EXPECT_THAT(list.out, Not(HasSubstr("choice")));
  list = heddle_command({"list", "axpby"});
  EXPECT_THAT(list.out,
              HasSubstr("\n  --in x=FILE  dtype[n]\n  --in --out y=FILE  dtype[n]\n  --size n="));
  list = heddle_command({"list", "gemm", "--json"});
  const nlohmann::json json = nlohmann::json::parse(list.out);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["refusals"][0]["condition"], "dtype=tf32|e4m3 and layout=tt|nn|nt");
  expect_misused(heddle_command({"list", "gem"}),
                 "unknown kernel 'gem'; did you mean 'gemm'? ('heddle list' shows all)");
}

TEST(ListTest, PrintsJson) {
  const Outcome list = heddle_command({"list", "--json", "--plugin", HEDDLE_SAXPY_PLUGIN});
  ASSERT_EQ(list.exit_code, 0) << list.err;
  const nlohmann::json json = nlohmann::json::parse(list.out);
  nlohmann::json row_sum, saxpy;
  for (const nlohmann::json& entry : json) {
    if (entry["name"] == "row_sum") row_sum = entry;
    if (entry["name"] == "saxpy") saxpy = entry;
  }
  EXPECT_EQ(row_sum["can_check"], true);
  EXPECT_EQ(row_sum["settings"][0]["choices"], nlohmann::json({"f32", "f16", "bf16"}));
  EXPECT_EQ(saxpy["settings"][0]["default"], "2");
}

TEST(EnvTest, SaysWhatThereIs) {
  const Outcome env = heddle_command({"env"});
  EXPECT_EQ(env.exit_code, 0) << env.err;
  for (const char* row :
       {"heddle", "compiler", "ptxas", "ptx-library", "nvdisasm", "cuobjdump", "cuda.h", "driver",
        "targets", "interp", "cache", "options", "variables"}) {
    EXPECT_THAT("\n" + env.out, HasSubstr(absl::StrCat("\n", row, " "))) << row;
  }
}

TEST(EnvTest, SaysWhatIsMissingAndHowToGetIt) {
  const std::vector<std::string> nothing = {
      "HEDDLE_PTXAS=/no/ptxas",       "HEDDLE_NVDISASM=/no/nv",
      "HEDDLE_CUOBJDUMP=/no/cu",      "HEDDLE_PTX_LIBRARY=/no/lib.so",
      "HEDDLE_OPTIONS=--opt-level=1", "HEDDLE_CUDA_LIBRARY=/no/libcuda.so"};
  const Outcome env = heddle_command({"env"}, nothing);
  EXPECT_EQ(env.exit_code, 0) << env.err;
  EXPECT_THAT(env.out, HasSubstr("ptxas        missing: ptxas from HEDDLE_PTXAS (/no/ptxas) "));
  EXPECT_THAT(env.out,
              HasSubstr("; fix: unset HEDDLE_PTXAS, or set it to the absolute path of ptxas; "
                        "tracing, IR, PTX and the interpreter work without it\n"));
  EXPECT_THAT(env.out, HasSubstr("; fix: unset HEDDLE_NVDISASM, or set it to the absolute path of "
                                 "nvdisasm"));
  EXPECT_THAT(env.out, HasSubstr("ptx-library  missing: libnvptxcompiler.so from "
                                 "HEDDLE_PTX_LIBRARY (/no/lib.so) "));
  EXPECT_THAT(env.out, Not(HasSubstr("Device::open")));
  EXPECT_THAT(env.out, ContainsRegex("\n  --opt-level=0\\|1\\|2\\|3 +1 +of ptxas\n"));
  EXPECT_THAT(env.out, ContainsRegex("\n  --line-info=off\\|on +on +let profilers"));
  EXPECT_THAT(env.out, HasSubstr("HEDDLE_PTXAS=/no/ptxas"));
  EXPECT_THAT(env.out, Not(HasSubstr("cuda:0 ")));

  const Outcome as_json = heddle_command({"env", "--json"}, nothing);
  ASSERT_EQ(as_json.exit_code, 0) << as_json.err;
  const nlohmann::json json = nlohmann::json::parse(as_json.out);
  EXPECT_THAT(json["ptxas"]["missing"].get<std::string>(), HasSubstr("/no/ptxas"));
  EXPECT_EQ(json["interp"]["works"], true);
  EXPECT_EQ(json["options"]["opt-level"]["value"], "1");
  EXPECT_EQ(json["variables"]["HEDDLE_NVDISASM"], "/no/nv");
}

TEST(EnvTest, SaysWhatIsWrongWithTheOptions) {
  const Outcome env = heddle_command({"env"}, {"HEDDLE_OPTIONS=--opt=1"});
  EXPECT_THAT(env.out, HasSubstr("options      wrong: HEDDLE_OPTIONS: there is no option '--opt'"));
}

TEST(CommandLineTest, ExplainsItself) {
  const Outcome help = heddle_command({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"list", "env", "run", "dump", "opt"}) {
    EXPECT_THAT(help.out, HasSubstr(absl::StrCat("\n  ", command, " ")));
    const Outcome own = heddle_command({command, "--help"});
    EXPECT_EQ(own.exit_code, 0);
    EXPECT_THAT(own.out, HasSubstr("--plugin"));
    EXPECT_EQ(own.err, "");
  }
  const Outcome version = heddle_command({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, MatchesRegex("heddle [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(CommandLineTest, AnswersMisuseWithOneLine) {
  expect_misused(heddle_command({}), absl::StrCat("what is to be done? ", kCommands));
  expect_misused(heddle_command({"dumpp"}),
                 absl::StrCat("unknown command 'dumpp'; did you mean 'dump'?; ", kCommands));
  expect_misused(heddle_command({""}), absl::StrCat("unknown command ''; ", kCommands));
  expect_misused(heddle_command({"--frobnicate"}),
                 absl::StrCat("unknown option '--frobnicate'; ", kCommands));
  expect_misused(heddle_command({"--hlep", "list"}),
                 absl::StrCat("unknown option '--hlep'; did you mean '--help'?; ", kCommands));
  expect_misused(heddle_command({"list", "--plugin", ""}), "--plugin: is empty; it takes LIBRARY");
  expect_misused(heddle_command({"list", "--jsn"}),
                 "list: unexpected argument '--jsn'; did you mean '--json'? ('heddle list --help' "
                 "shows all)");
  expect_misused(heddle_command({"list", "row_sum", "gemm"}),
                 "list: unexpected argument 'gemm' ('heddle list --help' shows all)");
  expect_misused(heddle_command({"list", "--plugin"}), HasSubstr("--plugin"));
  expect_misused(heddle_command({"run"}), HasSubstr("KERNEL is required"));
  expect_misused(heddle_command({"dump"}), HasSubstr("KERNEL is required"));
  expect_misused(heddle_command({"opt"}), HasSubstr("FILE is required"));
}

TEST(PluginTest, BringsKernels) {
  const Outcome list = heddle_command({"list", "--plugin", HEDDLE_SAXPY_PLUGIN});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("\nsaxpy "), HasSubstr("row_sum ")));
}

TEST(PluginTest, SaysWhyOneCannotBeUsed) {
  const TempDir dir;
  const std::string text = write_file(dir.file("text.so"), "no library");
  const auto with = [](const std::string& path) {
    return heddle_command({"list", "--plugin", path});
  };
  expect_misused(with("nowhere.so"),
                 "plug-in nowhere.so cannot be opened: No such file or directory");
  expect_misused(with(dir.path()),
                 StartsWith(absl::StrCat("plug-in ", dir.path(), " cannot be loaded: ")));
  expect_misused(with(text), StartsWith(absl::StrCat("plug-in ", text, " cannot be loaded: ")));
  expect_misused(with(HEDDLE_EMPTY_PLUGIN),
                 absl::StrCat("plug-in ", HEDDLE_EMPTY_PLUGIN,
                              " registers no kernels, passes or ops with this program; does it "
                              "hold a Registered, RegisteredPass or RegisteredOp constant, and was "
                              "this program linked with ENABLE_EXPORTS?"));
  expect_misused(with(HEDDLE_THROWING_PLUGIN),
                 absl::StrCat("plug-in ", HEDDLE_THROWING_PLUGIN,
                              " failed while it was loaded: no luck today"));
}

TEST(EmbeddingTest, AProgramHasTheCommandForItsOwnKernels) {
  const Outcome list = run_program(HEDDLE_HOST_COMMAND, {"list"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_EQ(list.out, "doubled              y = 2 x\n");
  const Outcome dump = run_program(HEDDLE_HOST_COMMAND, {"dump", "doubled", "--stage", "ptx"});
  EXPECT_EQ(dump.exit_code, 0) << dump.err;
  EXPECT_THAT(dump.out, HasSubstr(".entry doubled"));
  const Outcome with_plugin =
      run_program(HEDDLE_HOST_COMMAND, {"list", "--plugin", HEDDLE_SAXPY_PLUGIN});
  EXPECT_EQ(with_plugin.exit_code, 0) << with_plugin.err;
  EXPECT_THAT(with_plugin.out, HasSubstr("\nsaxpy "));
}

// Through a shell, which can close streams.
Outcome shell(const std::string& line) {
  return run_program("/bin/sh", {"-c", absl::StrCat(HEDDLE_COMMAND, " ", line)});
}

TEST(StreamTest, LostOutputIsAFailure) {
  expect_one_line(shell("list >/dev/full"), 1,
                  "standard output cannot be written: No space left on device");
  expect_one_line(shell("--help >/dev/full"), 1, StartsWith("standard output cannot be written"));
  expect_one_line(shell("list >&-"), 1, StartsWith("standard output cannot be written"));
}

TEST(StreamTest, ClosedStreamsAreNotMixedUpWithFiles) {
  const TempDir dir;
  make_npy(dir.file("x.npy"), ir::Scalar::kF32, {4, 4}, [](size_t i) { return i; });
  const Outcome run = shell(absl::StrCat("run row_sum --device interp --in x=", dir.file("x.npy"),
                                         " --out y=", dir.file("y.npy"), " >&- 2>&- <&-"));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(read_doubles(dir.file("y.npy")), ::testing::ElementsAre(6, 22, 38, 54));
}

// The reader of standard output went away, as `heddle … | head` does.
int wait_status_without_reader(const Arguments& arguments, bool ignore_signal, std::string* err) {
  int out[2], error[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC) | pipe2(error, O_CLOEXEC), 0);
  close(out[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  const auto before = signal(SIGPIPE, ignore_signal ? SIG_IGN : SIG_DFL);
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), HEDDLE_COMMAND);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, HEDDLE_COMMAND, &actions, &attributes, argv.data(), environ), 0);
  signal(SIGPIPE, before);
  close(out[1]);
  close(error[1]);
  char buffer[4096];
  for (ssize_t got; (got = read(error[0], buffer, sizeof(buffer))) > 0;) {
    err->append(buffer, static_cast<size_t>(got));
  }
  close(error[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

TEST(StreamTest, AReaderThatLeftIsNoNews) {
  std::string err;
  int status = wait_status_without_reader({"list"}, /*ignore_signal=*/false, &err);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) << status;
  EXPECT_EQ(err, "");
  status = wait_status_without_reader({"list"}, /*ignore_signal=*/true, &err);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_EQ(err, "");
}

// Both set-up scripts build the command, and README says where it lies.
TEST(SetUpTest, LeavesTheCommandWhereReadmeSays) {
  const std::string root = absl::StrCat(HEDDLE_TEST_DATA_DIR, "/../");
  EXPECT_TRUE(absl::EndsWith(HEDDLE_COMMAND, "/tools/heddle")) << HEDDLE_COMMAND;
  EXPECT_THAT(slurp(root + "README.md"),
              HasSubstr("After either of the two commands it is `build/release/tools/heddle`"));
  EXPECT_THAT(slurp(root + "tools/demo.sh"), HasSubstr("--target demo heddle_command\n"));
  EXPECT_THAT(slurp(root + "tools/test.sh"), Not(HasSubstr("--target")));  // builds all
}

}  // namespace
}  // namespace heddle::tools
