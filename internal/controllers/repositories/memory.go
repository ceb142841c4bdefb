package repositories

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/kube/quota"
)

// memory is what this process remembers. A restart repeats a conditional fetch of each repository at most.
type memory struct {
	background.Attempts[input, download]
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

// attempt is the last fetch of a repository.
type attempt = background.Attempt[input, download]

// download is what came of a fetch.
type download struct {
	result *result
	// rejected is the error of a content that cannot be used: of this attempt if it has ended, else of the one before.
	rejected *contentError
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
