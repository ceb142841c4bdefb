package scenarios_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"lockstep.run/lockstep/e2e/sandbox"
)

// componentCommands take components of the control plane away.
var componentCommands = commands{
	// component stop|kill|start NAME…: etcd, kube-apiserver,
	// kube-controller-manager, registry. start waits until it does its work, and
	// after kube-apiserver until reads succeed.
	"component": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) >= 2, "component stop|kill|start NAME…")
		do := map[string]func(context.Context, string) error{
			"stop": s.cluster().StopComponent, "kill": s.cluster().KillComponent, "start": s.cluster().StartComponent,
		}[args[0]]
		s.usage(do != nil, "component stop|kill|start NAME…")
		for _, name := range args[1:] {
			s.check(do(s.Context(), name))
		}
		if args[0] == "start" && (slices.Contains(args, sandbox.APIServer) || slices.Contains(args, sandbox.Etcd)) {
			s.awaitAPI()
		}
	},
}

// awaitAPI waits until the API server reads from etcd.
func (s *scenario) awaitAPI() {
	s.eventually(patience, "the API server to read from etcd", func(ctx context.Context) error {
		return s.env.Client.List(ctx, &corev1.NamespaceList{})
	})
}

// etcdCommands save and restore the state of etcd, as backups do. tools/etcd provides etcdctl
// and etcdutl.
var etcdCommands = commands{
	// etcd save FILE: a snapshot of the present state.
	//
	// etcd restore FILE [--bump]: stops the control plane, restores the snapshot, and
	// starts it again. With --bump, revisions continue far above the ones used since the
	// snapshot, and watches get an error because they are outdated, as Kubernetes'
	// documentation requires. Without it, revisions go back, and are reused for other states.
	"etcd": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) >= 2, "etcd save|restore FILE [--bump]")
		file := s.ts.MkAbs(args[1])
		switch args[0] {
		case "save":
			s.tool("etcdctl", "--endpoints="+s.cluster().Etcd(), "snapshot", "save", file)
			s.snapshots[args[1]] = slices.Clone(s.steps)
		case "restore":
			s.steps = s.restored(s.snapshots[args[1]])
			s.restore(file, slices.Contains(args, "--bump"))
		default:
			s.Fatalf("unknown action %q", args[0])
		}
	},
}

// restore replaces etcd's data with a snapshot.
func (s *scenario) restore(snapshot string, bump bool) {
	var members struct {
		Members []struct {
			Name     string
			PeerURLs []string
		}
	}
	s.check(json.Unmarshal([]byte(s.tool("etcdctl", "--endpoints="+s.cluster().Etcd(), "member", "list", "-w", "json")), &members))
	member := members.Members[0]
	data := filepath.Join(s.env.DataDir(), "etcd")
	args := []string{
		"snapshot", "restore", snapshot, "--data-dir=" + data, "--name=" + member.Name,
		"--initial-cluster=" + member.Name + "=" + member.PeerURLs[0], "--initial-advertise-peer-urls=" + member.PeerURLs[0],
	}
	if bump {
		args = append(args, "--bump-revision=1000000000", "--mark-compacted")
	}
	order := []string{sandbox.ControllerManager, sandbox.APIServer, sandbox.Etcd}
	for _, name := range order {
		s.check(s.env.StopComponent(s.Context(), name))
	}
	s.check(os.RemoveAll(data))
	s.tool("etcdutl", args...)
	for _, name := range slices.Backward(order) {
		s.check(s.env.StartComponent(s.Context(), name))
	}
	s.awaitAPI()
}

// tool runs a tool of etcd and returns its output.
func (s *scenario) tool(name string, args ...string) string {
	cmd := exec.CommandContext(s.Context(), "go", append([]string{"tool", "-modfile=tools/etcd/go.mod", name}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("%s: %v\n%s", name, err, stderr.String())
	}
	return string(out)
}
