package repositories

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/kube/quota"
)

// memory is what this process remembers. A restart repeats a conditional fetch of each repository at most.
type memory struct {
	sync.Mutex
	// account counts what repositories offer; it may be nil.
	account    *quota.Memory
	catalogues map[string]*catalogue
	fetches    map[types.NamespacedName]*fetches
}

// catalogue is what is remembered of the repositories of a namespace, or of the cluster. Its reconcile alone has it,
// except for the attempts, which are above the lock of memory.
type catalogue struct {
	states map[string]*state
	// pending are packages whose offers changed since they were published.
	pending map[string]struct{}
	// published are the parts by their names, as they were written or found last.
	published map[string]published
	// conflicts by package and repository.
	conflicts map[string]map[string][]string
	repaired  time.Time
}

type published struct{ packageName, digest string }

// state is what is remembered of one repository.
type state struct {
	uid types.UID
	// last is the last success, also of an earlier process; nil where there is none.
	last *success
	// content is what it offers; nil where no fetch of this process returned any.
	content  *packed
	priority int32
	limited  bool
	// attempt is the last one of this process, unless it was published. It is replaced with the lock of memory.
	attempt *attempt
	// began is when the last fetch began.
	began time.Time
	// unreported is published, and no status has it yet.
	unreported *result
	// source identifies the source of a generation.
	source     string
	generation int64
}

// success is a fetch whose content is published.
type success struct {
	// input is what was fetched; of an earlier process, the source alone is known.
	input input
	// restored is set for one of an earlier process.
	restored   bool
	validator  string
	retryValue string
	at         time.Time
	jitter     float64
	// incomplete is set where the repository offers more than is published of it, and its content is not in memory.
	incomplete bool
}

// input identifies what is fetched.
type input struct{ source, versions string }

// attempt is one fetch in the background.
type attempt struct {
	input      input
	retryValue string
	started    time.Time
	cancel     context.CancelFunc
	// done means that it has ended, with a result or with err.
	done   bool
	result *result
	err    error
	// rejected is the error of a content that cannot be used: of this attempt if it has ended, else of the one before.
	rejected *contentError
	// failures counts attempts in sequence, and retry is when the next one is due; zero for never.
	failures int
	retry    time.Time
}

// fetches counts the fetches of a repository by their outcome.
type fetches struct{ modified, unmodified, failed int }

func (r *Reconciler) catalogueOf(namespace string) (c *catalogue, known bool) {
	r.memory.Lock()
	defer r.memory.Unlock()
	if c = r.memory.catalogues[namespace]; c != nil {
		return c, true
	}
	c = &catalogue{
		states: map[string]*state{}, pending: map[string]struct{}{},
		published: map[string]published{}, conflicts: map[string]map[string][]string{},
	}
	if r.memory.catalogues == nil {
		r.memory.catalogues = map[string]*catalogue{}
	}
	r.memory.catalogues[namespace] = c
	return c, false
}

// drop forgets a namespace without repositories.
func (r *Reconciler) drop(namespace string) {
	r.memory.Lock()
	defer r.memory.Unlock()
	delete(r.memory.catalogues, namespace)
}

// setAttempt replaces the attempt of a repository, and cancels the one before.
func (m *memory) setAttempt(st *state, a *attempt) {
	m.Lock()
	defer m.Unlock()
	if st.attempt != nil {
		st.attempt.cancel()
	}
	st.attempt = a
}

// endAttempt replaces an attempt, which is read without the lock, by its outcome, and reports whether it is current.
func (m *memory) endAttempt(st *state, a, ended *attempt) bool {
	m.Lock()
	defer m.Unlock()
	if st.attempt != a {
		return false
	}
	st.attempt = ended
	return true
}

func (m *memory) attemptOf(st *state) *attempt {
	m.Lock()
	defer m.Unlock()
	return st.attempt
}

func (m *memory) count(key types.NamespacedName, add func(*fetches)) {
	m.Lock()
	defer m.Unlock()
	if m.fetches == nil {
		m.fetches = map[types.NamespacedName]*fetches{}
	}
	f := m.fetches[key]
	if f == nil {
		f = &fetches{}
		m.fetches[key] = f
	}
	add(f)
}
