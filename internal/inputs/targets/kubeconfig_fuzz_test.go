package targets

import (
	"errors"
	"strings"
	"testing"
)

// FuzzParse checks that any content of a Secret is either read according to the rules or refused.
//
// Code: kubeconfig.go
func FuzzParse(f *testing.F) {
	f.Add([]byte(kubeconfig("https://api.example.com", "", withToken)))
	f.Add([]byte(kubeconfig("https://api.example.com", ", certificate-authority-data: YQ==", "exec: {command: sh}")))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if config, err := parse(data, true); err == nil && (config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" || config.ExecProvider != nil) {
			t.Errorf("accepted of a file: %+v", config)
		}
		config, err := Parse(data)
		var refused *RefusedError
		switch {
		case err != nil && (!errors.As(err, &refused) || refused.Remedy == ""):
			t.Errorf("no remedy: %v", err)
		case err == nil && (!strings.HasPrefix(strings.ToLower(config.Host), "https://") || config.ExecProvider != nil || config.AuthProvider != nil || config.Insecure ||
			config.BearerTokenFile != "" || config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" || config.Impersonate.UserName != "" || config.Proxy != nil):
			t.Errorf("accepted: %+v", config)
		}
	})
}
