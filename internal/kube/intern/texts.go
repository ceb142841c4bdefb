package intern

import (
	"strings"
	"sync"

	"lockstep.run/lockstep/internal/limits"
)

// texts are those of all objects of ours.
var texts Texts

// Text returns an equal text, the same one for all who ask.
func Text[T ~string](s T) T { return T(texts.Of(string(s))) }

// Texts knows short texts that come again and again. The zero Texts is ready for
// use, also by several goroutines.
type Texts struct {
	mu    sync.Mutex
	known map[string]string
}

// Of returns an equal text, the same one for all who ask. It keeps no other text
// alive that s is a part of.
func (t *Texts) Of(s string) string {
	if s == "" || len(s) > limits.SharedTextBytes {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.known[s]; ok {
		return known
	}
	if t.known == nil || len(t.known) >= limits.SharedTexts {
		t.known = map[string]string{} // what comes again is soon back
	}
	s = strings.Clone(s)
	t.known[s] = s
	return s
}
