package targets

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// secretToken represents credentials, which must not appear in any message.
const secretToken = "geheim-geheim"

// kubeconfig returns a kubeconfig with additional fields of its cluster and its user.
func kubeconfig(server, cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: main
contexts: [{name: main, context: {cluster: c, user: u, namespace: ignored}}]
clusters: [{name: c, cluster: {server: %q%s}}]
users: [{name: u, user: {%s}}]
`, server, cluster, user)
}

const withToken = "token: " + secretToken

func TestParse(t *testing.T) {
	t.Parallel()
	config, err := Parse([]byte(kubeconfig("https://api.example.com:6443/k8s/c-1", ", tls-server-name: other.example.com", withToken)))
	require.NoError(t, err)
	if config.Host != "https://api.example.com:6443/k8s/c-1" || config.BearerToken != secretToken || config.ServerName != "other.example.com" {
		t.Errorf("%+v", config)
	}
}

// TestParseRefuses checks that a user cannot make the manager run, read or become anything. The
// refusal has a field and a remedy, and does not quote the content.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := "https://api.example.com"
	ca := base64.StdEncoding.EncodeToString([]byte("no certificate"))
	for _, tc := range []struct{ name, text, want string }{
		{"exec", kubeconfig(good, "", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: ["+secretToken+"]}"), "user.exec would run a program"},
		{"auth provider", kubeconfig(good, "", "auth-provider: {name: oidc, config: {a: "+secretToken+"}}"), "user.auth-provider would run"},
		{"token file", kubeconfig(good, "", "tokenFile: /var/run/secrets/token"), "user.tokenFile would be read from the manager's own files"},
		{"certificate file", kubeconfig(good, "", "client-certificate: /etc/cert"), "user.client-certificate would be read"},
		{"key file", kubeconfig(good, "", withToken+", client-key: /etc/key"), "user.client-key would be read"},
		{"authority file", kubeconfig(good, ", certificate-authority: /etc/ca", withToken), "cluster.certificate-authority would be read"},
		{"impersonation", kubeconfig(good, "", withToken+", as: admin"), "user.as would impersonate"},
		{"impersonated groups", kubeconfig(good, "", withToken+", as-groups: [system:masters]"), "user.as would impersonate"},
		{"impersonated extra", kubeconfig(good, "", withToken+", as-user-extra: {a: [b]}"), "user.as would impersonate"},
		{"insecure", kubeconfig(good, ", insecure-skip-tls-verify: true", withToken), "cluster.insecure-skip-tls-verify would send"},
		{"proxy", kubeconfig(good, ", proxy-url: http://proxy", withToken), "cluster.proxy-url is not supported"},
		{"password", kubeconfig(good, "", "username: a, password: "+secretToken), "user.username is no longer supported"},
		{"anonymous", kubeconfig(good, "", ""), "user has no credentials"},
		{"plain HTTP", kubeconfig("http://api.example.com", "", withToken), "cluster.server is not https"},
		{"another scheme", kubeconfig("file:///etc/passwd", "", withToken), "cluster.server is not a URL"},
		{"userinfo", kubeconfig("https://a:"+secretToken+"@api.example.com", "", withToken), "cluster.server has more than"},
		{"query", kubeconfig("https://api.example.com?a=b", "", withToken), "cluster.server has more than"},
		{"no server", kubeconfig("", "", withToken), "cluster.server is not a URL"},
		{"bad authority", kubeconfig(good, ", certificate-authority-data: "+ca, withToken), "certificate-authority-data has no certificate"},
		{"bad certificate", kubeconfig(good, "", "client-certificate-data: "+ca+", client-key-data: "+ca), "do not make a pair"},
		{"no context", "current-context: other\n" + strings.Replace(kubeconfig(good, "", withToken), "current-context: main\n", "", 1), "current-context is not one of"},
		{"no cluster", strings.Replace(kubeconfig(good, "", withToken), "cluster: c,", "cluster: d,", 1), "context.cluster is not one of"},
		{"no user", strings.Replace(kubeconfig(good, "", withToken), "user: u,", "user: d,", 1), "context.user is not one of"},
		{"no YAML", "a: [" + secretToken, "is not"},
		{"two documents", "a: 1\n---\nb: 2\n", "is not one YAML document"},
		{"nothing", "", "is not one YAML document"},
		{"a list", "[1, 2]", "has fields of other types"},
		{"types", "clusters: " + secretToken, "has fields of other types"},
		{"large", strings.Repeat("#", limits.KubeconfigBytes+1), fmt.Sprintf("the limit is %d", limits.KubeconfigBytes)},
		{"bomb", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", "kubeconfig"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(tc.text))
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want) || refused.Remedy == "" {
				t.Fatalf("%v, want %q and a remedy", err, tc.want)
			}
			if strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "example.com") {
				t.Errorf("the message quotes the kubeconfig: %v", err)
			}
		})
	}
}
