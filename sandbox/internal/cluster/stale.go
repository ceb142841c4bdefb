package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// killLimit bounds how long a killed process can take to disappear.
const killLimit = 5 * time.Second

// lockDir takes the lock of a data folder without waiting. held is false if another supervisor has
// it. The lock ends with the process.
func lockDir(l layout) (file *os.File, held bool, err error) {
	if err := os.MkdirAll(filepath.Dir(l.dir), 0o755); err != nil {
		return nil, false, fmt.Errorf("creating the folder for sandboxes: %w", err)
	}

	file, err = os.OpenFile(l.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("opening the sandbox's lock: %w", err)
	}

	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		file.Close()
		return nil, false, nil
	}
	if err != nil {
		file.Close()
		return nil, false, fmt.Errorf("locking %s: %w", l.lock(), err)
	}

	return file, true, nil
}

// clearStale stops all processes in dir that a dead supervisor left running, and removes the
// folder. The caller holds the folder's lock. This also clears the remains of the caller's own
// failed start.
func clearStale(dir string) error {
	s, err := readState(dir)
	if err != nil && !errors.Is(err, errNoSandbox) {
		return err
	}
	if err := foreignFolder(dir, err); err != nil {
		return err
	}
	if s.Supervisor.Alive() && s.Supervisor.PID != os.Getpid() {
		return fmt.Errorf("sandbox %s is run by process %d, which lost its lock: stop that process first", s.Name, s.Supervisor.PID)
	}

	for _, c := range s.Components {
		if err := c.Process.signal(syscall.SIGKILL); err != nil {
			return fmt.Errorf("stopping the %s of a killed sandbox: %w", c.Name, err)
		}
	}

	for _, c := range s.Components {
		if !c.Process.waitGone(killLimit) {
			return fmt.Errorf("the %s of a killed sandbox (process %d) does not end: stop it by hand", c.Name, c.PID)
		}
	}

	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing old data: %w", err)
	}

	return nil
}

// foreignFolder protects folders that do not belong to a sandbox. stateErr is the error of reading
// the state.
func foreignFolder(dir string, stateErr error) error {
	if !errors.Is(stateErr, errNoSandbox) {
		return nil
	}

	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || (err == nil && len(entries) == 0) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking into the data folder: %w", err)
	}
	if _, err := os.Stat((layout{dir}).pki()); err == nil {
		return nil // a start that was killed before it wrote its state
	}

	return fmt.Errorf("folder %s holds something else than a sandbox: choose another --data", dir)
}

// clearEphemeral removes the ephemeral sandboxes in folder whose supervisor was killed. This is
// only for tidiness, so it ignores errors.
func clearEphemeral(folder string) {
	states, _ := filepath.Glob(filepath.Join(folder, "*", "state.json"))
	for _, path := range states {
		dir := filepath.Dir(path)
		s, err := readState(dir)
		if err != nil || !s.Ephemeral || s.Phase != PhaseStopped {
			continue
		}
		lock, held, err := lockDir(layout{dir})
		if err != nil || !held {
			continue
		}
		if clearStale(dir) == nil {
			_ = os.Remove(lock.Name())
		}
		lock.Close()
	}
}
