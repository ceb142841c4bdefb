package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// whatNext prints suggestions to try next.
func (t *trial) whatNext(took time.Duration) {
	fmt.Printf(`
%s is installed on a real control plane, after %s in all. Try next, in this shell:

  export KUBECONFIG=%s
  export PATH=%s:%s:"$PATH"
  IMAGE=%[7]s

  kubectl package status clusterpackage/%[1]s
  kubectl package inspect --tree %[6]s
  kubectl get clusterpackages,clusterobjectsets,deployments -A

Something drifts: the Deployment comes back by itself.

  kubectl delete deployment -n cache-operator-system cache-operator

An upgrade, which writes only the changed object; and an upgrade that is refused, with the reason:

  echo '{"replicas": 3}'        | kubectl package install "$IMAGE" %[1]s --cluster --config -
  echo '{"logLevel": "debug"}'  | kubectl package install "$IMAGE" %[1]s --cluster --config -

Remove the package, in reverse order; and stop the sandbox and the manager:

  kubectl package delete clusterpackage/%[1]s
  ./task sandbox:down -- --name %[8]s

The manager's log: %[9]s
Run ./task try again to start the manager again.
`, packageName, took.Round(time.Second), quote(t.sandbox.Kubeconfig),
		quote(filepath.Join(t.repository, "bin")), quote(t.sandboxBin), example, t.image(), sandboxName, t.logFile())
}

// quote turns a text into a word of a POSIX shell.
func quote(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
