package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"lockstep.run/lockstep/e2e/sandbox/binary"
)

// AdminUser is the user name of [Sandbox.Config], a member of system:masters.
const AdminUser = "sandbox-admin"

// Sandbox is a running control plane. Its methods are safe for concurrent use.
type Sandbox struct {
	binary string
	info   info
	config *rest.Config

	process *exec.Cmd
	alive   io.Closer // the pipe whose end stops the sandbox
	stop    func() error
}

// info is the part of the binary's description of a sandbox that is used here.
type info struct {
	Name       string `json:"name"`
	DataDir    string `json:"dataDir"`
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	CAFile     string `json:"caFile"`
	CAKeyFile  string `json:"caKeyFile"`
	AuditLog   string `json:"auditLog"`
	Registry   string `json:"registry"`
	Etcd       string `json:"etcd"`
}

// Start runs a sandbox until the test ends. It fails the test if the sandbox cannot be
// started.
func Start(tb testing.TB, opts ...Option) *Sandbox {
	tb.Helper()
	s, err := Run(tb.Context(), opts...)
	if err != nil {
		tb.Fatalf("starting a sandbox: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Errorf("stopping the sandbox: %v", err)
		}
	})
	return s
}

// Run starts a sandbox and returns when it is ready. ctx bounds the start; the
// sandbox runs until [Sandbox.Stop], or until this process ends in any way.
func Run(ctx context.Context, opts ...Option) (*Sandbox, error) {
	o := newOptions(opts)
	path, err := Binary(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{binary: path}
	// Two start at a time: if ten do on two busy processors, none is ready within its limit.
	dir := filepath.Dir(path)
	started, err := binary.Lock(ctx, func() {}, filepath.Join(dir, ".start-1"), filepath.Join(dir, ".start-2"))
	if err != nil {
		return nil, err
	}
	err = s.run(ctx, o)
	started()
	if err != nil {
		return nil, err
	}
	if s.info.Kubeconfig == "" {
		return s, nil // without API server
	}
	s.config, err = clientcmd.BuildConfigFromFlags("", s.info.Kubeconfig)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the sandbox's kubeconfig: %w", err), s.Stop())
	}
	s.config.QPS = -1
	return s, nil
}

// Binary returns the path of the sandbox's binary: the one that LOCKSTEP_SANDBOX names, or
// the one for the sources of the repository that contains the current folder. It builds a
// missing binary and reports the progress.
func Binary(ctx context.Context, progress io.Writer) (string, error) {
	if path := os.Getenv("LOCKSTEP_SANDBOX"); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("LOCKSTEP_SANDBOX: %w", err)
		}
		return path, nil
	}
	repository, err := binary.Repository(".")
	if err != nil {
		return "", err
	}
	dir, err := binary.Ensure(ctx, repository, progress)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, binary.Name), nil
}

// run starts the supervisor and waits for the line that reports the outcome.
func (s *Sandbox) run(ctx context.Context, o options) error {
	name := fmt.Sprintf("test-%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:8]))
	var stderr bytes.Buffer
	cmd := exec.Command(s.binary, o.args(name)...)
	cmd.Stderr = &stderr
	// The collector runs less often, which saves a tenth of the processor time, and the memory
	// stays bounded.
	cmd.Env = append(os.Environ(), "GOGC=400", "GOMEMLIMIT="+o.memoryLimit)
	if testing.Testing() {
		// Several sandboxes run at a time. Looking for work on more processors would take another
		// tenth.
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	}
	// An interrupt from the terminal ends this process, which ends the sandbox.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", s.binary, err)
	}
	s.process, s.alive, s.stop = cmd, stdin, sync.OnceValue(s.end)
	giveUp := context.AfterFunc(ctx, func() { _ = stdin.Close() })
	line, _ := bufio.NewReader(stdout).ReadBytes('\n')
	if !giveUp() {
		return errors.Join(fmt.Errorf("waiting for the sandbox: %w", context.Cause(ctx)), s.Stop())
	}
	var answer struct {
		Error   string `json:"error"`
		Sandbox info   `json:"sandbox"`
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return errors.Join(fmt.Errorf("the sandbox ended at its start: %s", bytes.TrimSpace(stderr.Bytes())), s.Stop())
	}
	if answer.Error != "" {
		_ = s.Stop() // its exit code only repeats the error
		return errors.New(answer.Error)
	}
	s.info = answer.Sandbox
	return nil
}

// Stop ends the sandbox and removes its data. Every further call gives the first
// one's result.
func (s *Sandbox) Stop() error { return s.stop() }

func (s *Sandbox) end() error {
	_ = s.alive.Close() // the sandbox stops at this
	if err := s.process.Wait(); err != nil {
		return fmt.Errorf("the sandbox ended with an error: %w", err)
	}
	return nil
}

// Config returns a client configuration for the user [AdminUser], without
// client-side throttling. It is a copy. A sandbox without API server has none.
func (s *Sandbox) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Kubeconfig is the path of the administrator's kubeconfig; all keys are inline.
func (s *Sandbox) Kubeconfig() string { return s.info.Kubeconfig }

// Server is the URL of the API server.
func (s *Sandbox) Server() string { return s.info.Server }

// Registry is the host:port of the OCI registry. It speaks plain HTTP, accepts pushes
// without authentication, and keeps its content if the component restarts.
func (s *Sandbox) Registry() string { return s.info.Registry }

// Etcd is the URL of etcd's client endpoint, which speaks plain HTTP.
func (s *Sandbox) Etcd() string { return s.info.Etcd }

// DataDir is the folder with the sandbox's data and, below logs, one file per
// component. [Sandbox.Stop] removes it.
func (s *Sandbox) DataDir() string { return s.info.DataDir }

// AuditLog is the path of the API server's audit log; [Sandbox.Audit] reads it.
func (s *Sandbox) AuditLog() string { return s.info.AuditLog }

// Kubectl runs kubectl as the administrator and returns its standard output.
func (s *Sandbox) Kubectl(ctx context.Context, args ...string) (string, error) {
	return s.command(ctx, append([]string{"kubectl", "--name", s.info.Name, "--data", s.info.DataDir, "--"}, args...)...)
}

// StopComponent stops one component in an orderly way. Its data and ports stay, and it is not
// restarted automatically.
func (s *Sandbox) StopComponent(ctx context.Context, name string) error {
	_, err := s.command(ctx, "stop-component", s.info.Name, name, "--data", s.info.DataDir)
	return err
}

// KillComponent is [Sandbox.StopComponent] with SIGKILL, like a crash.
func (s *Sandbox) KillComponent(ctx context.Context, name string) error {
	_, err := s.command(ctx, "stop-component", s.info.Name, name, "--kill", "--data", s.info.DataDir)
	return err
}

// StartComponent starts a stopped component and waits, for a minute at most, until it works
// again. If a component that it depends on is stopped, StartComponent returns at once.
func (s *Sandbox) StartComponent(ctx context.Context, name string) error {
	_, err := s.command(ctx, "start-component", s.info.Name, name, "--data", s.info.DataDir)
	return err
}

func (s *Sandbox) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("sandbox %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
