package targets

import (
	"context"
	"encoding/pem"
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

func (f *fixture) message(t *testing.T) string {
	t.Helper()
	_, _, state := f.Find(f.ref)
	return state.Message
}
