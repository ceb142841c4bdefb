package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockstep.run/lockstep/sandbox/internal/program"
)

// DefaultName is the name of the sandbox if a command names none.
const DefaultName = "default"

// DefaultNodes is the number of simulated nodes of a sandbox.
const DefaultNodes = 2

// DefaultPodReadyAfter is [Options.PodReadyAfter] of a sandbox for people, who want to see a
// rollout wait. Tests do not wait.
const DefaultPodReadyAfter = 2 * time.Second

// Options describe a sandbox.
type Options struct {
	// Name distinguishes sandboxes on one machine: lower-case letters, digits and dashes, at most
	// 63 characters.
	Name string
	// Dir is the data folder; empty means a folder called Name below [Root].
	Dir string
	// Nodes is the number of simulated nodes. They require the component kwok.
	Nodes int
	// PodReadyAfter is how long a scheduled pod takes to become ready.
	PodReadyAfter time.Duration
	// Components lists the components to run; empty means all of [AllComponents].
	Components []string
	// AuditPolicy is the path of an audit policy file. If empty, every request is logged once, at
	// its end, at level Metadata.
	AuditPolicy string
	// Ephemeral sandboxes lose their data folder when they stop. If they were killed, the next
	// start of any sandbox clears them away.
	Ephemeral bool
}

// AllComponents lists the components of a complete sandbox in the order of their
// start.
func AllComponents() []string {
	return []string{
		program.Etcd, program.Registry, program.APIServer,
		program.ControllerManager, program.Scheduler, program.Kwok,
	}
}

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Complete returns o with defaults filled in and paths made absolute, or an error with the invalid
// option.
func (o Options) Complete() (Options, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if !validName.MatchString(o.Name) {
		return o, fmt.Errorf("sandbox name %q is invalid: use at most 63 lower-case letters, digits and dashes", o.Name)
	}
	if o.Nodes < 0 {
		return o, fmt.Errorf("number of nodes %d is negative", o.Nodes)
	}
	if o.PodReadyAfter < 0 {
		return o, fmt.Errorf("time until pods are ready %s is negative", o.PodReadyAfter)
	}
	if len(o.Components) == 0 {
		o.Components = AllComponents()
	}
	if err := checkComponents(o.Components); err != nil {
		return o, err
	}

	if o.Dir == "" {
		root, err := Root()
		if err != nil {
			return o, err
		}
		o.Dir = filepath.Join(root, o.Name)
	}

	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, fmt.Errorf("data folder: %w", err)
	}

	if o.AuditPolicy != "" {
		if o.AuditPolicy, err = filepath.Abs(o.AuditPolicy); err != nil {
			return o, fmt.Errorf("audit policy: %w", err)
		}
		if _, err := os.Stat(o.AuditPolicy); err != nil {
			return o, fmt.Errorf("audit policy: %w", err)
		}
	}

	return o, nil
}

func (o Options) has(component string) bool { return slices.Contains(o.Components, component) }

func checkComponents(names []string) error {
	all := AllComponents()
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("unknown component %q: choose from %s", name, strings.Join(all, ", "))
		}
		if name == program.APIServer && !slices.Contains(names, program.Etcd) {
			return fmt.Errorf("component %s needs %s: add it", name, program.Etcd)
		}
		if isClient(name) && !slices.Contains(names, program.APIServer) {
			return fmt.Errorf("component %s needs %s: add it", name, program.APIServer)
		}
	}

	return nil
}

// isClient reports whether a component is a client of the API server.
func isClient(name string) bool {
	switch name {
	case program.ControllerManager, program.Scheduler, program.Kwok:
		return true
	}
	return false
}

// Root is the folder that holds the data folders of all sandboxes:
// ${LOCKSTEP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lockstep}/sandbox.
func Root() (string, error) {
	if dir := os.Getenv("LOCKSTEP_CACHE"); dir != "" {
		return filepath.Abs(filepath.Join(dir, "sandbox"))
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "lockstep", "sandbox"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w; set LOCKSTEP_CACHE", err)
	}
	return filepath.Join(home, ".cache", "lockstep", "sandbox"), nil
}
