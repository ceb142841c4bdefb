package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	sandboxName = "try"
	namespace   = "package-operator-system"
	manager     = "lockstep-manager"
	example     = "examples/operator/cluster"
	packageName = "cache-operator"
)

// trial has the data that the steps share.
type trial struct {
	repository string
	// sandboxBin is the folder with the sandbox's binary and kubectl; dir is the folder of this
	// program's files.
	sandboxBin, dir string
	sandbox         sandboxInfo
}

// sandboxInfo is the sandbox's description of itself.
type sandboxInfo struct {
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	CAFile     string `json:"caFile"`
	Registry   string `json:"registry"`
}

func say(format string, args ...any) { fmt.Printf("==> "+format+"\n", args...) }

func (t *trial) bin(name string) string { return filepath.Join(t.repository, "bin", name) }

func (t *trial) image() string { return t.sandbox.Registry + "/" + packageName + ":v1" }

// build makes bin/.
func (t *trial) build(ctx context.Context) error {
	say("Building the manager and kubectl-package (some minutes the first time, then seconds)")
	return t.show(exec.CommandContext(ctx, "./task", "build"), "the build failed; its messages are above")
}

// startSandbox starts the sandbox unless it is running.
func (t *trial) startSandbox(ctx context.Context) error {
	say("Starting the sandbox %q: etcd, API server, controllers, simulated nodes, a registry", sandboxName)
	out, err := t.quiet(exec.CommandContext(ctx, filepath.Join(t.sandboxBin, "sandbox"), "up", "--name", sandboxName, "--output", "json"),
		"the sandbox does not start; ./task sandbox:down -- --name "+sandboxName+" clears away the remains of an earlier one")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, &t.sandbox); err != nil {
		return fmt.Errorf("reading the sandbox's description: %w", err)
	}
	fmt.Println("    API server " + t.sandbox.Server + ", registry " + t.sandbox.Registry)
	return nil
}

// installConfig applies config and waits until its kinds are served.
func (t *trial) installConfig(ctx context.Context) error {
	say("Installing config: CRDs, RBAC, admission policy")
	if _, err := t.kubectl(ctx, nil, "apply", "--server-side", "--force-conflicts", "-k", "config"); err != nil {
		return err
	}

	definitions, err := filepath.Glob("config/crds/*_*.yaml")
	if err != nil || len(definitions) == 0 {
		return fmt.Errorf("there are no CRDs in config/crds: %w", errors.Join(err, os.ErrNotExist))
	}

	wait := []string{"wait", "--for=condition=Established", "--timeout=60s"}
	for _, path := range definitions {
		group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".yaml"), "_")
		wait = append(wait, "crd/"+plural+"."+group)
	}

	if _, err := t.kubectl(ctx, nil, wait...); err != nil {
		return err
	}

	_, err = t.kubectl(ctx, nil, "--namespace", namespace, "scale", "deployment", manager, "--replicas=0")
	return err
}

// pushExample builds the example and pushes it to the sandbox's registry.
func (t *trial) pushExample(ctx context.Context) error {
	say("Building %s as %s", example, t.image())
	return t.show(exec.CommandContext(ctx, t.bin("kubectl-package"), "build", example, "--tag", t.image(), "--push", "--insecure-registry", t.sandbox.Registry),
		"the example could not be built")
}

// installExample installs the example and shows its rollout.
func (t *trial) installExample(ctx context.Context) error {
	say("kubectl package install %s %s --cluster", t.image(), packageName)
	cmd := exec.CommandContext(ctx, t.bin("kubectl-package"), "install", t.image(), packageName, "--cluster", "--timeout", "3m")
	return t.show(cmd, "the example did not become available; the manager's log is "+t.logFile())
}

// kubectl runs the sandbox's kubectl as its administrator.
func (t *trial) kubectl(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(t.sandboxBin, "kubectl"), args...)
	cmd.Stdin = stdin
	return t.quiet(cmd, "kubectl "+strings.Join(args[:min(2, len(args))], " ")+" failed")
}

// show runs a command with output for the user.
func (t *trial) show(cmd *exec.Cmd, failure string) error {
	cmd.Env, cmd.Stdout, cmd.Stderr = t.environ(), os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s (%w)", failure, err)
	}
	return nil
}

// quiet runs a command and returns its output. If it fails, the error has its messages.
func (t *trial) quiet(cmd *exec.Cmd, failure string) ([]byte, error) {
	var out, errOut bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = t.environ(), &out, &errOut
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s (%w):\n%s", failure, err, bytes.TrimSpace(errOut.Bytes()))
	}
	return out.Bytes(), nil
}

// environ is the environment with the sandbox as the cluster.
func (t *trial) environ() []string {
	env := os.Environ()
	if t.sandbox.Kubeconfig != "" {
		env = append(env, "KUBECONFIG="+t.sandbox.Kubeconfig)
	}
	return env
}
