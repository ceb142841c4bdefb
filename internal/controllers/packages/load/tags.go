package load

import (
	"context"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/kube/background"
)

// Tag is a tag as far as it is known.
type Tag struct {
	image     string
	interval  time.Duration
	Due       time.Time
	Resolving bool
	// Digest is its last digest, and err why the last resolution failed.
	Digest string
	Err    error
	// unpacked is the digest when the resolution started: its response must not revert content that
	// was unpacked since.
	unpacked string
	// retryValue is the retry annotation at the last reconcile.
	retryValue string
}

// Question is a Package's request for the digest of its tag, once in an interval and after a retry.
type Question struct {
	Image    string
	Interval time.Duration
	// RetryValue is the retry annotation, and Unpacked the digest that was unpacked last.
	RetryValue, Unpacked string
	// Request returns the request to the registry.
	Request func() Request
}

// LookUp returns the known state of a tag. If a resolution is due, it starts one, whose end
// enqueues the Package.
func (l *Loads) LookUp(p *Package, q Question) Tag {
	l.attempts.Lock()
	defer l.attempts.Unlock()
	now, known := l.Now(), p.tag
	if known == nil || known.image != q.Image || known.interval != q.Interval {
		known = &Tag{image: q.Image, interval: q.Interval, Due: now.Add(l.Spread(q.Interval)), retryValue: q.RetryValue}
		p.tag = known
	}

	switch q.Unpacked {
	case known.Digest:
		known.unpacked = q.Unpacked
	case known.unpacked:
	default:
		known.Digest = ""
	}

	if known.Resolving {
		return *known
	}
	if q.RetryValue != known.retryValue {
		known.retryValue, known.Due = q.RetryValue, now
	}

	if !now.Before(known.Due) {
		known.Resolving, known.unpacked = true, q.Unpacked
		l.resolve(p, q.Request(), known)
	}

	return *known
}

// DropTag forgets the tag of a Package.
func (l *Loads) DropTag(p *Package) {
	l.attempts.Lock()
	defer l.attempts.Unlock()
	p.tag = nil
}

// resolve requests the registry when its queue has capacity, unless the tag was dropped meanwhile.
func (l *Loads) resolve(p *Package, in Request, known *Tag) {
	current := func() bool {
		l.attempts.Lock()
		defer l.attempts.Unlock()
		return p.tag == known
	}
	background.Run(l.Life, &l.hosts, background.Job{
		Owner: in.Pkg, Host: hostOf(in.decision().Pull), Doing: "resolving the tag of " + in.Image, Await: func(context.Context) bool { return current() },
	}, func(ctx context.Context) (string, error) { return l.Resolve(ctx, in) }, func(digest string, err error) {
		l.attempts.Lock()
		known.Resolving, known.Due = false, l.Now().Add(l.Spread(known.interval))
		if known.Err = err; err == nil {
			known.Digest = digest
		}
		l.attempts.Unlock()
		if current() {
			l.Enqueue(client.ObjectKeyFromObject(in.Pkg))
		}
	})
}

// Tagged reports whether an image is named by a tag.
func Tagged(image string) bool {
	ref, err := name.ParseReference(image)
	if err != nil {
		return false
	}
	_, isTag := ref.(name.Tag)
	return isTag
}
