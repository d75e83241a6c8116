package clients

// task is what every agent is told.
const task = "please do the task"

// An empty argument is the place of those with which the agent asks nobody.

var claude = Client{
	Name: "claude", Prefixed: true, Package: "@anthropic-ai/claude-code", Settings: ".claude/settings.json",
	Key: "ANTHROPIC_API_KEY", Place: "--header x-api-key", Header: "X-Api-Key:[%s]",
	text: `{"cleanupPeriodDays": 30}`,
	env: []string{
		"ANTHROPIC_BASE_URL=" + place, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1",
		"IS_SANDBOX=1", // or it asks nobody only where it is not root
	},
	args:  []string{"-p", task, "", "--output-format", "json"},
	free:  []string{"--permission-mode", "bypassPermissions"},
	front: "claude-agent-acp", told: "CLAUDE_CODE_EXECUTABLE",
}

var codex = Client{
	Name: "codex", Package: "@openai/codex", Settings: ".codex/config.toml",
	Key: "OPENAI_API_KEY", Place: "--bearer", Header: "Authorization:[Bearer %s]",
	text: `model = "` + Model + `"
model_provider = "tests"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.tests]
name = "tests"
base_url = "` + place + `/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`,
	args:  []string{"exec", "--json", "--skip-git-repo-check", "", task},
	free:  []string{"--dangerously-bypass-approvals-and-sandbox"},
	front: "codex-acp", told: "CODEX_PATH", Free: []string{"INITIAL_AGENT_MODE=agent-full-access"},
}

var opencode = Client{
	Name: "opencode", Package: "opencode-ai", Settings: ".config/opencode/opencode.json",
	Key: "OPENAI_API_KEY", Place: "--bearer", Header: "Authorization:[Bearer %s]",
	text: `{"autoupdate": false, "share": "disabled", "model": "tests/` + Model + `", "small_model": "tests/` + Model + `",
"provider": {"tests": {"npm": "@ai-sdk/openai-compatible", "name": "tests", "options": {"baseURL": "` + place + `/v1", "apiKey": "{env:OPENAI_API_KEY}"}, "models": {"` + Model + `": {"name": "` + Model + `"}}}}}`,
	files: map[string]string{ // or it fetches what plugins may need, and waits for it
		".config/opencode/node_modules/.keep": "",
		".config/opencode/package-lock.json":  `{"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}`,
	},
	env:    []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
	args:   []string{"run", "", "--format", "json", task},
	free:   []string{"--auto"},
	editor: []string{"acp"}, asking: `"permission": {"bash": "ask", "edit": "ask", "external_directory": "ask"}, `,
}

var gemini = Client{
	Name: "gemini", Package: "@google/gemini-cli", Settings: ".gemini/settings.json",
	Key: "GEMINI_API_KEY", Place: "--header x-goog-api-key", Header: "X-Goog-Api-Key:[%s]",
	text:   `{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}, "general": {"enableAutoUpdate": false, "disableAutoUpdate": true}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}}`,
	env:    []string{"GOOGLE_GEMINI_BASE_URL=" + place, "GEMINI_CLI_TRUST_WORKSPACE=true"},
	args:   []string{"", "-m", "gemini-2.5-flash", "-p", task},
	free:   []string{"--approval-mode", "yolo"},
	editor: []string{"--acp", "-m", "gemini-2.5-flash"}, Keeps: true,
}

var qwen = Client{
	Name: "qwen", Package: "@qwen-code/qwen-code", Settings: ".qwen/settings.json",
	Key: "OPENAI_API_KEY", Place: "--bearer", Header: "Authorization:[Bearer %s]",
	text:   `{"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": false}, "general": {"disableAutoUpdate": true, "enableAutoUpdate": false}}`,
	env:    []string{"OPENAI_MODEL=" + Model, "OPENAI_BASE_URL=" + place + "/v1"},
	args:   []string{"", "-p", task},
	free:   []string{"--approval-mode", "yolo"},
	editor: []string{"--acp"},
}

var copilot = Client{
	Name: "copilot", Closed: true, Package: "@github/copilot", Settings: ".copilot/settings.json",
	Key: "COPILOT_PROVIDER_API_KEY", Place: "--bearer", Header: "Authorization:[Bearer %s]",
	text: `{"banner": "never"}`,
	env: []string{
		"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "COPILOT_PROVIDER_BASE_URL=" + place + "/v1", "COPILOT_PROVIDER_TYPE=openai", "COPILOT_MODEL=" + Model,
	},
	args:   []string{"-p", task, ""},
	free:   []string{"--allow-all"},
	editor: []string{"--acp"},
}

var pi = Client{
	Name: "pi", Closed: true, Package: "@earendil-works/pi-coding-agent", Settings: ".pi/agent/models.json",
	Key: "OPENAI_API_KEY", Place: "--bearer", Header: "Authorization:[Bearer %s]",
	text: `{"providers": {"tests": {"baseUrl": "` + place + `/v1", "api": "openai-completions", "apiKey": "OPENAI_API_KEY", "models": [{"id": "` + Model + `"}]}}}`,
	env:  []string{"PI_OFFLINE=1", "PI_TELEMETRY=0"},
	args: []string{"-p", "--mode", "text", "--provider", "tests", "--model", Model, task},
}
