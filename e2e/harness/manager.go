package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// Manager is a running manager process.
type Manager struct {
	cmd   *exec.Cmd
	log   string
	done  chan struct{}
	probe atomic.Pointer[string] // the address of probes, once it is logged
}

// StartManager starts a manager under the service account of config and waits
// until it is ready. It is stopped with the test; its log is shown if the test failed.
func (e *Env) StartManager(tb testing.TB, args ...string) *Manager {
	tb.Helper()
	return e.StartManagerOf(tb, Binary(tb, "lockstep-manager"), args...)
}

// LaunchManager is StartManager without the wait.
func (e *Env) LaunchManager(tb testing.TB, args ...string) *Manager {
	tb.Helper()
	return e.LaunchManagerOf(tb, Binary(tb, "lockstep-manager"), args...)
}

// StartManagerOf is StartManager for another program, such as another version's.
func (e *Env) StartManagerOf(tb testing.TB, program string, args ...string) *Manager {
	tb.Helper()
	m := e.LaunchManagerOf(tb, program, args...)
	Eventually(tb, Patience, "the manager to be ready", func(ctx context.Context) error { return m.Ready(ctx) })
	return m
}

// LaunchManagerOf is LaunchManager for another program.
func (e *Env) LaunchManagerOf(tb testing.TB, program string, args ...string) *Manager {
	tb.Helper()
	m := e.launch(tb, program, args...)
	tb.Cleanup(func() {
		m.Stop()
		if tb.Failed() {
			tb.Logf("last lines of the manager's log:\n%s", tail(m.log, 60))
		}
	})
	return m
}

func (e *Env) launch(tb testing.TB, program string, args ...string) *Manager {
	tb.Helper()
	dir, err := os.MkdirTemp(e.DataDir(), "manager-")
	require.NoError(tb, err)
	m, err := e.start(dir, program, append(e.flags(dir, e.ManagerKubeconfig), args...))
	require.NoError(tb, err)
	return m
}

// flags returns the flags of a manager on this machine, with files in a folder.
func (e *Env) flags(dir, kubeconfig string) []string {
	return append(e.local(dir, kubeconfig), "--namespace", "package-operator-system", "--leader-elect=true")
}

// local returns the flags that differ between this machine and a pod: addresses, files, and a
// log for failed tests.
func (e *Env) local(dir, kubeconfig string) []string {
	return []string{
		"--kubeconfig", kubeconfig, "--metrics-bind-address", "0", "--metrics-secure=false", "--health-probe-bind-address", "127.0.0.1:0",
		"--insecure-registry", e.Registry(), "--cache-dir", filepath.Join(dir, "cache"), "--log-level", "debug",
	}
}

// start starts a process with its log in a folder.
func (e *Env) start(dir, program string, args []string, environ ...string) (*Manager, error) {
	m := &Manager{cmd: exec.Command(program, args...), log: filepath.Join(dir, "manager.log"), done: make(chan struct{})}
	log, err := os.Create(m.log)
	if err != nil {
		return nil, err
	}
	m.cmd.Stdout, m.cmd.Stderr = log, log
	// The manager only bounds its memory itself if GOGC is not set, as in a cluster; ./task sets
	// it.
	environment := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "GOGC=") })
	m.cmd.Env = append(environment, "GOMEMLIMIT="+cmp.Or(e.MemoryLimit, "400MiB")) // as config/manager has it
	if race() {
		m.cmd.Env = append(environment, "GORACE=halt_on_error=1")
	}
	m.cmd.Env = append(m.cmd.Env, environ...)
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		log.Close()
		return nil, err
	}
	e.mu.Lock()
	e.managers = append(e.managers, m)
	e.mu.Unlock()
	go func() {
		_ = m.cmd.Wait()
		log.Close()
		close(m.done)
	}()
	return m, nil
}

// probes matches the line of the log with the address of the probes, because the manager
// chooses the port.
var probes = regexp.MustCompile(`"msg":"starting server".*"name":"health probe","addr":"([^"]+)"`)

// Ready returns an error while the manager is not ready.
func (m *Manager) Ready(ctx context.Context) error {
	address := m.probe.Load()
	if address == nil {
		found := probes.FindStringSubmatch(m.Log())
		if found == nil {
			return fmt.Errorf("the manager serves no probes yet; its log ends with:\n%s", tail(m.log, 5))
		}
		address = &found[1]
		m.probe.Store(address)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+*address+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w; its log ends with:\n%s", err, tail(m.log, 5))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the manager answers %s", resp.Status)
	}
	return nil
}

// ClearLease lets the next manager lead at once after the previous one was killed.
func (e *Env) ClearLease(tb testing.TB) {
	tb.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}}
	require.NoError(tb, client.IgnoreNotFound(e.Client.Delete(context.WithoutCancel(tb.Context()), lease)))
}

// Stop ends the manager in an orderly way, by force after ten seconds.
func (m *Manager) Stop() {
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.done:
	case <-time.After(10 * time.Second):
		m.Kill()
	}
}

// Kill ends the manager with SIGKILL, like a crash.
func (m *Manager) Kill() {
	if err := m.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		panic(err)
	}
	<-m.done
}

// Signal sends a signal such as SIGSTOP.
func (m *Manager) Signal(s os.Signal) { _ = m.cmd.Process.Signal(s) }

// PID of the manager's process.
func (m *Manager) PID() int { return m.cmd.Process.Pid }

// Peak returns the most memory that the process had, in bytes.
func (m *Manager) Peak(tb testing.TB) int64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.PID()))
	require.NoError(tb, err)
	for line := range strings.Lines(string(status)) {
		if kilobytes, found := strings.CutPrefix(line, "VmHWM:"); found {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kilobytes), " kB"), 10, 64)
			require.NoError(tb, err)
			return n << 10
		}
	}
	tb.Fatal("the process has ended, or this is not Linux")
	return 0
}

// Exited reports whether the process ended.
func (m *Manager) Exited() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// Done is closed when the process has ended.
func (m *Manager) Done() <-chan struct{} { return m.done }

// Log returns the manager's log.
func (m *Manager) Log() string {
	raw, _ := os.ReadFile(m.log)
	return string(raw)
}

// Metrics returns the metrics, of at most 16 MiB, that a manager serves at an address.
func Metrics(tb testing.TB, address string) string {
	tb.Helper()
	resp, err := http.Get("http://" + address + "/metrics")
	require.NoError(tb, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	require.NoError(tb, err)
	return string(text)
}

func tail(path string, lines int) string {
	raw, _ := os.ReadFile(path)
	all := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
