package targets

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/outbound"
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
		{"no YAML", "a: [" + secretToken, "is not valid"},
		{"two documents", "a: 1\n---\nb: 2\n", "current-context is not one of"},
		{"nothing", "", "current-context is not one of"},
		{"a list", "[1, 2]", "is not valid"},
		{"types", "clusters: " + secretToken, "is not valid"},
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

// write replaces a file atomically.
func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(content), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// TestFile checks that all files named by a kubeconfig are followed: changed content starts a new
// session, and a missing file is reported.
func TestFile(t *testing.T) {
	t.Parallel()
	s, dir := newServer(t, "one"), t.TempDir()
	file := &File{Path: filepath.Join(dir, "kubeconfig"), Every: time.Millisecond}
	f := &fixture{ref: file.Ref(), woken: make(chan struct{}, 100)}
	f.Targets = New(Options[*connection]{
		Get: file.Get, Listen: file.Listen, Parse: file.Parse, Policy: outbound.Policy{Local: true}, Own: "name another one",
		Home: func(context.Context) (types.UID, error) { return "home", nil },
		Open: func(ctx context.Context, _ Ref, config *rest.Config, cluster types.UID, _ func(int64)) (*connection, error) {
			client, err := rest.HTTPClientFor(config)
			return &connection{cluster: cluster, ctx: ctx, client: client, host: config.Host}, err
		},
	})
	go func() { _ = f.Start(t.Context()) }()
	f.Use("ObjectSetPhase shop/app", f.ref, func() { f.woken <- struct{}{} })

	if _, message := f.await(t, corev1alpha1.ReasonKubeconfigMissing); message != "file "+file.Path+" does not exist: create it. It is tried again when the file changes." {
		t.Errorf("missing: %s", message)
	}
	named := kubeconfig(s.URL, ", certificate-authority: ca.crt", "tokenFile: token")
	write(t, file.Path, named)
	if _, message := f.await(t, corev1alpha1.ReasonKubeconfigRefused); !strings.Contains(message, "cluster.certificate-authority names a file that cannot be read") {
		t.Errorf("without the certificate: %s", message)
	}
	write(t, filepath.Join(dir, "token"), secretToken)
	write(t, filepath.Join(dir, "ca.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	first, _ := f.await(t, corev1alpha1.ReasonTargetConnected)
	if status, err := first.get(t); status != http.StatusOK || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	write(t, file.Path, kubeconfig(s.URL, ", certificate-authority: ca.crt", "exec: {command: sh}"))
	if _, message := f.await(t, corev1alpha1.ReasonKubeconfigRefused); !strings.Contains(message, "user.exec would run a program") {
		t.Errorf("with a program: %s", message)
	}
	if first.ctx.Err() == nil {
		t.Error("the session continues with a refused kubeconfig")
	}
	write(t, file.Path, strings.Repeat(" ", limits.KubeconfigBytes)+named)
	for !strings.Contains(f.message(t), "the limit is") {
		f.await(t, corev1alpha1.ReasonKubeconfigRefused)
		<-f.woken
	}
	write(t, file.Path, named)
	second, _ := f.await(t, corev1alpha1.ReasonTargetConnected)
	if second == first {
		t.Error("it is the same session")
	}
	s.set(func(s *server) { s.uid = "home" })
	write(t, file.Path, named+"\n# once more\n")
	write(t, filepath.Join(dir, "ca.crt"), "\n"+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	if _, message := f.await(t, corev1alpha1.ReasonKubeconfigRefused); !strings.Contains(message, "name another one") {
		t.Errorf("home: %s", message)
	}
}

// A file that a kubeconfig names is bounded, and replaces the data next to its path.
func TestNamedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := &File{Path: filepath.Join(dir, "kubeconfig")}
	write(t, file.Path, kubeconfig("https://a.example", ", certificate-authority: ca.crt, certificate-authority-data: b2xk", "tokenFile: token"))
	write(t, filepath.Join(dir, "ca.crt"), "new")
	data, err := file.read()
	require.NoError(t, err)
	_, cluster, user, err := decode(data)
	require.NoError(t, err)
	require.Equal(t, []string{"", "new", filepath.Join(dir, "token")}, []string{cluster.CertificateAuthority, string(cluster.CertificateAuthorityData), user.TokenFile})

	write(t, filepath.Join(dir, "ca.crt"), strings.Repeat("x", limits.KubeconfigBytes+1))
	_, err = file.read()
	require.ErrorContains(t, err, fmt.Sprintf("cluster.certificate-authority names a file of more than %d bytes", limits.KubeconfigBytes))
}

func (f *fixture) message(t *testing.T) string {
	t.Helper()
	_, _, state := f.Find(f.ref)
	return state.Message
}
