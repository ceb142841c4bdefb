package fetch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
)

// Source is the source to fetch, with the objects that it names.
type Source struct {
	Spec corev1alpha1.RepositorySource
	// Namespace is the namespace of the source's object; empty for a cluster-scoped one.
	Namespace string
	// Secrets are the data of the Secrets that secretRef and filesFrom name.
	Secrets map[string]map[string][]byte
	// ConfigMaps are the data of the ConfigMaps that filesFrom names.
	ConfigMaps map[string]map[string]string
	// Keychain has the credentials of imagePullSecrets; it can be nil. OwnOnly excludes all other
	// credentials, as in registry.Access.
	Keychain authn.Keychain
	OwnOnly  bool
	// Image is the policies' decision about the source's image; zero for other sources.
	Image imagepolicy.Decision
	// Admit, if set, is called when everything is downloaded, before more than
	// limits.SmallPackageBytes of it are read into memory. It can wait.
	Admit func() error
}

// inRoom reads content with little memory. If that returns archive.ErrRoom, it reads the content
// again with the maximum.
func (s *Source) inRoom(read func(room int64) error) error {
	err := read(limits.SmallPackageBytes)
	if !errors.Is(err, archive.ErrRoom) {
		return err
	}
	if s.Admit != nil {
		if err := s.Admit(); err != nil {
			return err
		}
	}
	return read(0)
}

// Result is the content of a source.
type Result struct {
	// Files are *.yaml, *.yml and *.json files by their paths, with slashes.
	Files map[string][]byte
	// FromSecrets has the paths of files that come from Secrets. Messages must not quote them.
	FromSecrets map[string]bool
	// Digest is a digest over paths and contents, such as sha256:…. It is empty if files come from
	// Secrets, because their content could be guessed from it.
	Digest string
	// Revision is the source's name for the content: a digest, a tag, a commit, an ETag.
	Revision string
	// Validator makes the next fetch conditional.
	Validator string
	// Verification is the result of verifying the image. It is nil if no signature is required, or
	// if the given Validator belongs to a verified image.
	Verification *imagepolicy.Outcome
	// NotModified is set if the content has not changed since the given Validator. The only other
	// fields that are set then are Validator and Verification.
	NotModified bool
}

// Options configure a Fetcher.
type Options struct {
	// Puller pulls images; nil refuses them.
	Puller *registry.Puller
	// Policy decides which addresses to fetch from. If it permits local ones, credentials are also
	// sent over plain HTTP.
	Policy outbound.Policy
	// Proxy is http.ProxyFromEnvironment by default.
	Proxy func(*http.Request) (*url.URL, error)
	// Bytes limits the files of a repository, and the objects of a commit. limits.RepositoryBytes
	// is the default and the maximum.
	Bytes int64
	// UserAgent is "lockstep" by default.
	UserAgent string
}

// Fetcher fetches sources. It is safe for concurrent use.
type Fetcher struct {
	opts Options
	// unpacks and gitReads bound the content in memory. Their holders do not wait for servers.
	unpacks, gitReads *queueing.Semaphore
	// disk is the account that downloads share with images.
	disk *queueing.Semaphore
}

// New returns a Fetcher.
func New(o Options) *Fetcher {
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	if o.Bytes == 0 || o.Bytes > limits.RepositoryBytes {
		o.Bytes = limits.RepositoryBytes
	}
	if o.UserAgent == "" {
		o.UserAgent = "lockstep"
	}

	f := &Fetcher{
		opts: o, unpacks: queueing.NewSemaphore(limits.UnpacksInFlight, limits.UnpacksInFlight),
		gitReads: queueing.NewSemaphore(1, 1), disk: registry.NewDisk(),
	}
	if o.Puller != nil {
		f.disk = o.Puller.Disk()
	}

	return f
}

// Fetch returns the content of a source. known is the Validator of the last Result, or empty. The
// error is an *Error, an *imagepolicy.Refusal, or wraps the cause of ctx.
func (f *Fetcher) Fetch(ctx context.Context, s Source, known string) (*Result, error) {
	fingerprint := fingerprintOf(s.Spec)
	known, ok := strings.CutPrefix(known, fingerprint)
	if !ok {
		known = ""
	}
	// A source that is pinned by a digest or commit cannot change, but the policy that verified it
	// can.
	if known != "" && Static(s.Spec) && VerifiedBy(known) == s.Image.VerificationKey && s.Image.Refusal == nil {
		return &Result{NotModified: true, Validator: fingerprint + known}, nil
	}

	ctx, cancel := context.WithTimeoutCause(ctx, limits.FetchTime, errFetchTime)
	defer cancel()
	r, err := f.recovered(ctx, s, known)
	if err != nil {
		return nil, typed(ctx, err)
	}
	if r.NotModified {
		r.Validator = fingerprint + cmp.Or(r.Validator, known)
		return r, nil
	}
	if len(r.FromSecrets) == 0 {
		r.Digest = digestOf(r.Files)
	}

	r.Validator = fingerprint + r.Validator
	return r, nil
}

// typed turns every error into an *Error, except the caller's cancellation.
func typed(ctx context.Context, err error) error {
	var own *Error
	switch {
	case errors.As(err, &own), imagepolicy.RefusalOf(err) != nil:
		return err
	case errors.Is(context.Cause(ctx), errFetchTime):
		return &Error{Details: fmt.Sprintf("the fetch took longer than %v", limits.FetchTime)}
	case ctx.Err() != nil:
		return err
	}
	return &Error{Details: outbound.Redact(err.Error())}
}

// recovered calls the function for the kind of source. It turns a panic over the content of a source
// into an error that does not quote the content.
func (f *Fetcher) recovered(ctx context.Context, s Source, known string) (r *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, permanent("Report it, with the repository.", "the source cannot be read: panic of the type %T", p)
		}
	}()
	switch spec := s.Spec; {
	case spec.Inline != nil:
		return inline(s, known)
	case spec.Image != nil:
		return f.image(ctx, s, known)
	case spec.HTTP != nil:
		return f.http(ctx, s, known)
	case spec.Git != nil:
		return f.git(ctx, s, known)
	}
	return nil, permanent("Set one of image, http, git and inline.", "the source is empty")
}

// Static reports whether a source always has the same content: an image by digest, a file with
// sha256, a commit, or inline content without filesFrom.
func Static(s corev1alpha1.RepositorySource) bool {
	switch {
	case s.Image != nil:
		return s.Image.TagSelection == nil && strings.Contains(s.Image.Ref, "@sha256:")
	case s.HTTP != nil:
		return s.HTTP.SHA256 != ""
	case s.Git != nil:
		return s.Git.TagSelection == nil && isCommit(s.Git.Ref)
	case s.Inline != nil:
		return len(s.Inline.FilesFrom) == 0
	}
	return false
}

// isCommit reports whether a ref is the hash of a commit.
func isCommit(ref string) bool {
	return len(ref) == 40 && strings.Trim(ref, "0123456789abcdef") == ""
}

// fingerprintOf distinguishes the validators of different sources, and of program versions that
// read them differently.
func fingerprintOf(s corev1alpha1.RepositorySource) string {
	const format = 1
	data, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%d-%s ", format, hex.EncodeToString(sum[:8]))
}
