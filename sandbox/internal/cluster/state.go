package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Phases of a sandbox.
const (
	PhaseStarting = "starting"
	PhaseReady    = "ready"
	PhaseStopping = "stopping"
	// PhaseStopped is the phase of a sandbox without a living supervisor.
	PhaseStopped = "stopped"
)

// States of a component.
const (
	StateRunning = "running"
	// StateStopped: by request, see [Client.StopComponent].
	StateStopped = "stopped"
	// StateExited: by itself. The supervisor is about to start it again.
	StateExited = "exited"
)

// Info describes a sandbox to its users. Commands print it as JSON.
type Info struct {
	Name    string `json:"name"`
	Phase   string `json:"phase"`
	DataDir string `json:"dataDir"`
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Server is the API server's URL.
	Server string `json:"server,omitempty"`
	// CAFile and CAKeyFile have the authority that signs the certificates of clients: a certificate
	// issued by it with CN=user and O=groups is a user.
	CAFile    string `json:"caFile,omitempty"`
	CAKeyFile string `json:"caKeyFile,omitempty"`
	AuditLog  string `json:"auditLog,omitempty"`
	// Registry is the host:port of the OCI registry, without TLS.
	Registry string `json:"registry,omitempty"`
	// Etcd is the URL of etcd's client endpoint, without TLS.
	Etcd       string            `json:"etcd,omitempty"`
	Nodes      int               `json:"nodes"`
	Supervisor Process           `json:"supervisor"`
	Components []ComponentStatus `json:"components"`
}

// ComponentStatus describes one component's process.
type ComponentStatus struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Process
	// Restarts counts how often it exited by itself and was started again.
	Restarts int `json:"restarts"`
	// Log is the path of the file with its output.
	Log string `json:"log"`
}

// state is the content of state.json.
type state struct {
	Info
	Ephemeral bool `json:"ephemeral"`
	// Control is the URL of the supervisor's control endpoint and ControlToken its
	// bearer token.
	Control      string `json:"control"`
	ControlToken string `json:"controlToken"`
}

// errNoSandbox means that a data folder does not contain a sandbox.
var errNoSandbox = errors.New("there is no such sandbox")

// readState reads the state of the sandbox in dir, and corrects the phase to the present one. It
// returns errNoSandbox if there is no sandbox.
func readState(dir string) (state, error) {
	var s state
	content, err := os.ReadFile(layout{dir}.state())
	if errors.Is(err, fs.ErrNotExist) {
		return s, errNoSandbox
	}
	if err != nil {
		return s, fmt.Errorf("reading the sandbox's state: %w", err)
	}
	if err := json.Unmarshal(content, &s); err != nil {
		return s, fmt.Errorf("the state file %s is damaged: %w; remove the folder %s", layout{dir}.state(), err, dir)
	}
	if !s.Supervisor.Alive() {
		s.Phase = PhaseStopped
	}

	return s, nil
}

// write replaces the state file atomically.
func (s state) write() error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the sandbox's state: %w", err)
	}

	path := layout{s.DataDir}.state()
	temp := filepath.Join(s.DataDir, ".state.json")
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}

	return nil
}
