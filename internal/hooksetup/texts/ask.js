// Written by "bawn init", which also takes it away ("bawn init --undo").
// Changes made here are lost. It lets Bawn decide on every call of a tool; an
// answer that does not come, or that can't be read, is a no.
import { spawn } from "node:child_process";

const bawn = "@BAWN@";
const agent = "@AGENT@";
const patience = @SECONDS@ * 1000;
const longest = 4 << 20;

const no = (reason) => ({ decision: "deny", reason });

// ask gives bawn one message and resolves to its answer, never to an error.
function ask(message) {
  return new Promise((resolve) => {
    let child;
    try {
      child = spawn(bawn, ["hook", agent@FLAGS@], { stdio: ["pipe", "pipe", "pipe"] });
    } catch (error) {
      return resolve(no(`bawn can't be started: ${error.message}`));
    }
    const end = (answer) => {
      clearTimeout(late);
      resolve(answer);
    };
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      end(no("bawn gave no answer in time"));
    }, patience);
    let out = "";
    let said = "";
    child.stdout.on("data", (piece) => {
      out += piece;
      if (out.length <= longest) return;
      child.kill("SIGKILL");
      child.stdout.destroy(); // whoever has the other end may go on
      end(no("bawn said more than an answer"));
    });
    child.stderr.on("data", (piece) => (said = (said + piece).slice(0, 2000)));
    child.on("error", (error) => end(no(`bawn can't be started: ${error.message}`)));
    child.on("close", (code) => {
      let answer;
      try {
        answer = JSON.parse(out);
      } catch {
        answer = null;
      }
      if (code === 0 && answer !== null && answer.decision === "allow") return end(answer);
      const reason = answer !== null && typeof answer.reason === "string" ? answer.reason : said.trim();
      end(no(reason || `bawn hook ended with ${code} and said nothing`));
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify({ v: "1", ...message }));
  });
}

// exchange puts other arguments in the place of those that the agent will use.
function exchange(args, other) {
  for (const name of Object.keys(args)) delete args[name];
  Object.assign(args, other);
}
