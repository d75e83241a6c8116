
export const Bawn = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const answer = await ask({
      event: "tool.execute.before", tool: input.tool, input: output.args ?? {}, cwd: directory, session: input.sessionID, id: input.callID,
    });
    if (answer.decision !== "allow") throw new Error(answer.reason);
    if (answer.input) exchange(output.args, answer.input);
  },
  "tool.execute.after": async (input) => {
    await ask({ event: "tool.execute.after", tool: input.tool, input: input.args ?? {}, cwd: directory, session: input.sessionID, id: input.callID });
  },
});
