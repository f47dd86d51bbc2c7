package policy

import (
	"path/filepath"
	"slices"
	"strings"
)

// credential is one kind of secrets and where they are kept: below the home
// directory, or absolute.
type credential struct {
	kind  string
	paths []string
}

// credentials are denied under every profile but off. Directories are named
// where all of one is secret: what is made in them later is covered too.
var credentials = []credential{
	{"ssh", []string{".ssh"}},
	{"gpg", []string{".gnupg"}},
	{"aws", []string{".aws"}},
	{"gcloud", []string{".config/gcloud", ".boto"}},
	{"azure", []string{".azure"}},
	{"kube", []string{".kube"}},
	{"docker", []string{".docker/config.json", ".config/containers/auth.json", ".dockercfg"}},
	{"netrc", []string{".netrc", "_netrc"}},
	{"git", []string{".git-credentials", ".config/git/credentials"}},
	{"gh", []string{".config/gh", ".config/hub", ".config/glab-cli"}},
	{"npm", []string{".npmrc", ".yarnrc.yml", ".config/configstore"}},
	{"builds", []string{
		".m2/settings.xml", ".gradle/gradle.properties", ".composer/auth.json", ".config/composer/auth.json", ".gem/credentials",
	}},
	{"pypi", []string{".pypirc", ".config/pip/pip.conf", ".pip/pip.conf"}},
	{"cargo", []string{".cargo/credentials", ".cargo/credentials.toml"}},
	{"cloud", []string{
		".vault-token", ".terraformrc", ".terraform.d/credentials.tfrc.json", ".config/doctl", ".fly", ".config/op", ".databrickscfg",
		".s3cfg", ".config/rclone/rclone.conf",
	}},
	{"databases", []string{".pgpass", ".my.cnf"}},
	{"agents", []string{
		".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".grok/auth.json", ".grok/credentials.json",
		".gemini/oauth_creds.json", ".config/github-copilot", ".local/share/opencode/auth.json",
	}},
	{"keyrings", []string{".local/share/keyrings", ".local/share/kwalletd", ".password-store", ".config/keepassxc", ".config/sops/age"}},
	{"browsers", []string{".mozilla", ".config/google-chrome", ".config/chromium"}},
	{"histories", []string{".bash_history", ".zsh_history"}},
	{"system", []string{
		"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssh/ssh_host_rsa_key",
		"/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_dsa_key",
	}},
}

// CredentialKinds lists the names that allow_credentials may hold.
func CredentialKinds() []string {
	var out []string
	for _, c := range credentials {
		out = append(out, c.kind)
	}
	return out
}

// Credentials are the entries of the group for the given home directories
// without the kinds that are allowed.
func Credentials(homes []string, allowed []Entry) []Entry {
	var out []Entry
	for _, c := range credentials {
		if slices.ContainsFunc(allowed, func(e Entry) bool { return e.Path == c.kind }) {
			continue
		}
		for _, path := range c.paths {
			if strings.HasPrefix(path, "/") {
				out = append(out, Entry{Path: path, Origin: "credentials: " + c.kind, Optional: true})
				continue
			}
			for _, home := range homes {
				if home != "" && home != "/" {
					out = append(out, Entry{Path: filepath.Join(home, path), Origin: "credentials: " + c.kind, Optional: true})
				}
			}
		}
	}
	return out
}

// runLater are names, below a workspace or a home directory, of what programs
// outside of the sandbox run or believe later.
var runLater = []string{
	".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".husky", ".pre-commit-config.yaml",
	".hayward", ".claude", ".codex", ".grok", ".gemini", ".cursor", ".opencode", ".mcp.json",
	".vscode", ".idea", ".devcontainer", ".envrc",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".config/fish", ".gitconfig", ".config/git", ".xprofile",
	".config/autostart", ".config/systemd", ".local/share/systemd",
}

// RunLater are the paths to keep from being written: those of runLater below each
// directory, without those that are allowed.
func RunLater(dirs []string, allowed []Entry) []string {
	var out []string
	for _, dir := range dirs {
		for _, name := range runLater {
			path := filepath.Join(dir, name)
			if dir != "" && !slices.ContainsFunc(allowed, func(e Entry) bool { return Within(path, e.Path) }) {
				out = append(out, path)
			}
		}
	}
	return out
}
