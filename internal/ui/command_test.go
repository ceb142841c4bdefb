package ui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clustertest"
)

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
	s := newServer(t.Context(), clustertest.FakeCluster(t), "127.0.0.1:1")
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
