package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// The address with the code is in a file that only the user can read. The program only gets its
// name. The file is removed with the command.
func TestAddressIsForTheUserAlone(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:4711/#the-code"
	var file string
	remove, err := openThroughFile(t.Context(), address, func(_ context.Context, name string) error {
		file = name
		return nil
	})
	require.NoError(t, err)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if dir, err := os.Stat(filepath.Dir(file)); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v", dir, err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "url="+address) || strings.Contains(file, "the-code") {
		t.Errorf("%s: %q, %v", file, text, err)
	}
	remove()
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("it stays: %v", err)
	}
	_, err = openThroughFile(t.Context(), address, func(_ context.Context, name string) error {
		file = name
		return errors.New("there is no browser")
	})
	if _, left := os.Stat(file); err == nil || !os.IsNotExist(left) {
		t.Errorf("after a failure: %v, %v", err, left)
	}
}

// If no browser opens, standard output has only the address.
func TestAddressIsPrinted(t *testing.T) {
	t.Parallel()
	for name, noBrowser := range map[string]bool{"asked for": true, "no browser": false} {
		var out, errOut bytes.Buffer
		dial := func(genericclioptions.RESTClientGetter, io.Writer) (*cluster.Cluster, error) {
			return clustertest.FakeCluster(t), nil
		}
		c := &uiCommand{
			Command: command.Command{Streams: clustertest.Streams(&out, &errOut), Dial: dial}, noBrowser: noBrowser,
			open: func(context.Context, string) error { return errors.New("xdg-open is not installed") },
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.announce(ctx, "127.0.0.1:1", "http://127.0.0.1:1/#code"); err != nil {
			t.Fatal(err)
		}
		require.Equal(t, "http://127.0.0.1:1/#code\n", out.String(), name)
		if strings.Contains(errOut.String(), "not installed") == noBrowser {
			t.Errorf("%s: %q", name, errOut.String())
		}
	}
}

// The commands on a page would use the current context, which might lead to another cluster than
// the page's.
func TestCommandsAreOfTheCluster(t *testing.T) {
	t.Parallel()
	if notes := notesOf("", ""); notes != nil {
		t.Errorf("without flags: %q", notes)
	}
	if notes := notesOf("prod", "/k"); len(notes) != 1 || !strings.HasSuffix(notes[0], ": --context=prod --kubeconfig=/k") {
		t.Errorf("%q", notes)
	}
	s := newServer(t.Context(), clustertest.FakeCluster(t), "127.0.0.1:1", func() {})
	s.notes = notesOf("prod", "")
	if notes := s.frame().Notes; len(notes) == 0 || !strings.Contains(notes[0], "--context=prod") {
		t.Errorf("the page notes %q", notes)
	}
}

// A package that is deleted while its page is drawn is not found.
func TestPageOfWhatIsGone(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	write(w, http.StatusOK, nil)
	if w.Code != http.StatusNotFound {
		t.Errorf("%d", w.Code)
	}
}
