
export default function (pi) {
  pi.on("tool_call", async (event, ctx) => {
    const answer = await ask({
      event: "tool_call", tool: event.toolName, input: event.input ?? {}, cwd: ctx.cwd, session: ctx.sessionManager.getSessionId(), id: event.toolCallId,
      interactive: ctx.hasUI,
    });
    if (answer.decision !== "allow") return { block: true, reason: answer.reason };
    if (answer.input) exchange(event.input, answer.input);
  });
  pi.on("tool_result", async (event, ctx) => {
    await ask({ event: "tool_result", tool: event.toolName, input: event.input ?? {}, cwd: ctx.cwd, session: ctx.sessionManager.getSessionId(), id: event.toolCallId });
  });
}
