package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"k8s.io/apimachinery/pkg/util/cache"

	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

const (
	registryConnections = 32     // registries whose connections are kept
	verifiedKept        = 10_000 // successful verifications to keep, by digest and policy
)

// Image is a package image.
type Image struct {
	// Digest is the digest that the reference resolved to, such as sha256:…. For a multi-platform
	// image it is the index's.
	Digest string
	// Files are the files of the package. They are read-only because callers can share them.
	Files archive.Files
}

// Access defines how one image is pulled.
type Access struct {
	// Namespace is the namespace of the object that names the image. The pull takes its share. It
	// is empty for cluster-scoped objects.
	Namespace string
	// Keychain takes precedence over the Puller's. It can be nil.
	Keychain authn.Keychain
	// Own means that the keychain of the Puller is ignored. The cache then answers only with
	// content from the same repository, and only once the registry has confirmed that these
	// credentials can read it.
	Own     bool
	Offline bool
	// Exact means that an administrator named the registry for all namespaces: no override changes
	// the reference, and the registry can be at a private address.
	Exact bool
	// Selection selects files. If set, it replaces Options.Folder.
	Selection *archive.Selection
	// Room is the Room of the package's archive.Selection.
	Room int64
	// Admit, if set, is called when everything is downloaded, before it is unpacked into memory,
	// unless another caller is unpacking the same image. It can wait longer than a pull can take.
	// It fails if its caller has given up.
	Admit func() error
}

// namespaced reports whether the limits for namespaces apply.
func (a Access) namespaced() bool { return a.Namespace != "" && !a.Exact }

// errNotAdmitted is the error of a caller that has given up. Others that wait for the same work
// start again.
var errNotAdmitted = errors.New("the pull was given up")

// Puller pulls images. It is safe for concurrent use.
type Puller struct {
	opts     Options
	insecure map[string]bool
	// named are registries that can be at private addresses for all namespaces.
	named   map[string]bool
	store   *store
	flights *flights[archive.Files]
	guards  *cache.LRUExpireCache
	// pulls bounds concurrent sessions with registries, unpacks the content in memory, and disk the
	// bytes of open downloads.
	pulls, unpacks, disk *queueing.Semaphore
	// verifications are the successful ones, and checks the ones in progress.
	verifications *cache.LRUExpireCache
	checks        *flights[imagepolicy.Verified]
	access        Access
}

// NewPuller returns a Puller, or an error for an invalid option.
func NewPuller(opts Options) (*Puller, error) {
	opts.setDefaults()
	insecure, err := opts.insecureHosts()
	if err != nil {
		return nil, err
	}
	if err := opts.bundles().err(); err != nil {
		return nil, err
	}
	store, err := newStore(opts.CacheDir, imageCacheBytes, opts.OnCacheError)
	if err != nil {
		return nil, err
	}
	return &Puller{
		opts: opts, insecure: insecure, named: opts.named(), store: store, guards: cache.NewLRUExpireCache(registryConnections),
		flights: newFlights[archive.Files](),
		pulls:   queueing.NewSemaphore(limits.PullsInFlight, limits.PullsOfNamespace),
		unpacks: queueing.NewSemaphore(limits.UnpacksInFlight, limits.UnpacksInFlight),
		disk:    NewDisk(),

		verifications: cache.NewLRUExpireCache(verifiedKept),
		checks:        newFlights[imagepolicy.Verified](),
	}, nil
}

// NewDisk returns an account of downloads on disk, in bytes.
func NewDisk() *queueing.Semaphore {
	return queueing.NewSemaphore(limits.DownloadsBytes, limits.DownloadsOfNamespaceBytes)
}

// Disk returns the account of downloads on disk, which others share.
func (p *Puller) Disk() *queueing.Semaphore { return p.disk }

// With returns a Puller with another access. It shares everything else with p.
func (p *Puller) With(access Access) *Puller {
	own := *p
	own.access = access
	return &own
}

// keychain returns the credentials of a pull: the object's own, and unless they are exclusive also
// the manager's.
func (p *Puller) keychain() authn.Keychain {
	switch {
	case p.access.Own && p.access.Keychain == nil:
		return authn.NewMultiKeychain() // anonymous
	case p.access.Own:
		return p.access.Keychain
	case p.access.Keychain == nil:
		return p.opts.Keychain
	}
	return authn.NewMultiKeychain(p.access.Keychain, p.opts.Keychain)
}

// Resolve returns the digest of a reference. Its error is a *PullError, or wraps the cause of ctx.
func (p *Puller) Resolve(ctx context.Context, ref string) (string, error) {
	parsed, err := p.parse(ref)
	if err != nil {
		return "", err
	}
	h, err := p.resolve(ctx, ref, parsed)
	if err != nil {
		return "", err
	}
	return h.String(), nil
}

// Pull returns the package in an image. Its error is a *PullError, or wraps the cause of ctx.
func (p *Puller) Pull(ctx context.Context, ref string) (*Image, error) {
	parsed, err := p.parse(ref)
	if err != nil {
		return nil, err
	}

	digest, err := p.resolve(ctx, ref, parsed)
	if err != nil {
		return nil, err
	}

	repo := parsed.Context()
	key, err := p.access.key(ctx, repo)
	if err != nil {
		return nil, p.classify(ctx, ref, err, nil)
	}

	// Callers only share a download that reads the same files with the same credentials.
	key += fmt.Sprintf(" %p %d", p.access.Selection, p.access.Room)
	files, err := p.flights.do(ctx, repo.Name()+"@"+digest.String()+key, func(ctx context.Context) (files archive.Files, err error) {
		err = p.withSession(ctx, ref, repo, func(ctx context.Context, s *session) error {
			// Resolving a tag has already asked the registry with these credentials.
			if _, asked := parsed.(name.Tag); p.access.Own && !asked {
				if err := s.confirm(ctx, digest); err != nil {
					return err
				}
			}
			files, err = s.fetch(ctx, digest)
			return err
		})
		return files, err
	})
	if errors.Is(err, errNotAdmitted) && ctx.Err() == nil {
		return p.Pull(ctx, ref)
	}
	if err != nil {
		return nil, p.classify(ctx, ref, err, nil)
	}

	return &Image{Digest: digest.String(), Files: files}, nil
}

// key separates work by credentials, rights to connect, and namespaces, because a namespace would
// otherwise wait with another's share. Errors of the keychain are reported by its user.
func (a Access) key(ctx context.Context, repo name.Repository) (string, error) {
	connects := fmt.Sprintf(" %s %t %t", a.Namespace, a.Exact, a.Own)
	if a.Offline {
		return " offline" + connects, nil
	}
	if a.Keychain == nil {
		return connects, nil
	}

	auth, err := authn.Resolve(ctx, a.Keychain, repo)
	if err != nil || auth == authn.Anonymous {
		return connects, nil
	}

	config, err := authn.Authorization(ctx, auth)
	if err != nil {
		return "", err
	}

	return fmt.Sprintf(" %x", sha256.Sum256(fmt.Appendf(nil, "%q", *config))) + connects, nil
}

// resolve returns the digest of a parsed reference. A digest needs no request.
func (p *Puller) resolve(ctx context.Context, ref string, parsed name.Reference) (h v1.Hash, err error) {
	if byDigest, ok := parsed.(name.Digest); ok {
		if h, err = v1.NewHash(byDigest.DigestStr()); err != nil {
			return h, &PullError{Ref: safeRef(ref), Reason: ReasonInvalidReference, Details: "the digest cannot be read"}
		}
		return h, nil
	}
	err = p.withSession(ctx, ref, parsed.Context(), func(ctx context.Context, s *session) error {
		h, err = s.resolve(ctx, parsed.Identifier())
		return err
	})
	return h, err
}

// withSession calls use with a session that ends within the timeout of a pull.
func (p *Puller) withSession(ctx context.Context, ref string, repo name.Repository, use func(context.Context, *session) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.opts.Timeouts.Pull, errPullTimeout)
	defer cancel()
	s := &session{p: p, repo: repo, store: view{store: p.store}}
	if p.access.Own {
		sum := sha256.Sum256([]byte(repo.Name()))
		s.store.suffix = "-" + hex.EncodeToString(sum[:16])
	}
	defer s.close()
	err := use(ctx, s)
	if err != nil && s.guard != nil {
		p.guards.Remove(s.guard.key) // the next pull starts with new connections
	}
	return p.classify(ctx, ref, err, s.secrets)
}

// resolve sends a HEAD, which does not count for rate limits. If the registry lacks support, it
// downloads the manifest.
func (s *session) resolve(ctx context.Context, tag string) (v1.Hash, error) {
	h, err := s.head(ctx, tag)
	var response *transport.Error
	switch {
	case err == nil && h != v1.Hash{}:
		return h, nil
	case err != nil && !errors.As(err, &response):
		return h, err
	case response != nil && (response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500):
		return h, err
	}

	data, err := s.manifest(ctx, tag)
	if err != nil {
		return h, err
	}

	h, _, err = v1.SHA256(bytes.NewReader(data))
	return h, err
}

// confirm asks the registry whether the credentials can read an image that is in the cache. This
// proves nothing about content from another repository, whose registry can confirm anything;
// therefore Own has a separate cache for each repository.
func (s *session) confirm(ctx context.Context, digest v1.Hash) error {
	if !s.store.has(digest) {
		return nil // it is downloaded with the credentials
	}
	if s.p.access.Offline {
		return failf(ReasonNotCached, "Choose another imagePullPolicy.",
			"no registry is asked with imagePullPolicy Never, and the manager has images of namespaces confirmed by theirs (--shared-pull-secrets=cluster)")
	}
	_, err := s.resolve(ctx, digest.String())
	return err
}

// fetch downloads the layers that the cache lacks, and unpacks the package. It opens all layers
// before it unpacks any, because an eviction can remove the files of closed ones.
func (s *session) fetch(ctx context.Context, digest v1.Hash) (archive.Files, error) {
	manifest, err := s.imageManifest(ctx, digest)
	if err != nil {
		return nil, err
	}
	if err := archive.CheckManifest(&v1.Manifest{Layers: manifest.Layers}); err != nil {
		return nil, err
	}

	release, err := s.reserve(ctx, manifest.Layers)
	if err != nil {
		return nil, err
	}

	defer release() // once they are closed: a layer that the cache evicts meanwhile is still on disk
	layers := make([]*os.File, 0, len(manifest.Layers))
	defer func() {
		for _, f := range layers {
			_ = f.Close()
		}
	}()

	for _, d := range manifest.Layers {
		f, err := s.store.get(d.Digest, func(w io.Writer) error { return s.blob(ctx, d, w) })
		if err != nil {
			return nil, err
		}
		layers = append(layers, f)
	}

	// The registry is not needed any more, so the pull gives up its place before it waits for
	// memory.
	s.close()
	if s.p.access.Admit != nil {
		if err := s.p.access.Admit(); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotAdmitted, err)
		}
		ctx = context.WithoutCancel(ctx) // the download is complete, and the size bounds the rest
	}

	return s.p.unpack(ctx, manifest.Layers, layers)
}

// reserve reserves room on disk for all layers of an image at once. A pull with a part of it would
// wait for others that wait for that part. Layers to download wait for the registry first, as all
// others do.
func (s *session) reserve(ctx context.Context, layers []v1.Descriptor) (release func(), err error) {
	var bytes int64
	for _, d := range layers {
		bytes += d.Size
		if !s.store.has(d.Digest) {
			if err := s.start(ctx); err != nil {
				return nil, err
			}
		}
	}
	return s.p.disk.Acquire(ctx, s.p.access.Namespace, bytes)
}

// imageManifest returns the manifest with a digest. If that is an index, it returns the manifest of
// one image in it. An index can lead to another one, as BuildKit writes them, but no further.
func (s *session) imageManifest(ctx context.Context, digest v1.Hash) (*content, error) {
	for range 3 {
		c, err := s.storedManifest(ctx, digest)
		if err != nil || len(c.Manifests) == 0 {
			return c, err
		}
		digest = c.choose().Digest
	}
	return nil, failf(ReasonInvalidImage, "Push the image again with another tool.", "the index leads to an index that leads to a third one")
}

// storedManifest returns a manifest from the store, or from the registry. The store verifies
// content only when it is read, so a download is verified here.
func (s *session) storedManifest(ctx context.Context, digest v1.Hash) (*content, error) {
	f, err := s.store.get(digest, func(w io.Writer) error {
		data, err := s.manifest(ctx, digest.String())
		if err == nil {
			err = verify(bytes.NewReader(data), digest)
		}
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	if err != nil {
		return nil, err
	}

	data, err := readAll(f)
	if err != nil {
		return nil, err
	}

	return parseContent(data)
}

// selection returns the files to read from the image.
func (p *Puller) selection() archive.Selection {
	selection := archive.Selection{Folder: p.opts.Folder}
	if p.access.Selection != nil {
		selection = *p.access.Selection
	}
	if selection.Bytes == 0 {
		selection.Bytes = p.opts.PackageBytes
	}
	selection.Room = p.access.Room
	return selection
}

// unpack verifies the layers while it reads them, so that exactly the verified bytes are used.
func (p *Puller) unpack(ctx context.Context, descriptors []v1.Descriptor, layers []*os.File) (archive.Files, error) {
	release, err := p.unpacks.Acquire(ctx, p.access.Namespace, 1)
	if err != nil {
		return nil, err
	}

	defer release()
	u := archive.NewUnpacker(p.selection())
	for i, f := range layers {
		hasher, err := v1.Hasher(descriptors[i].Digest.Algorithm)
		if err != nil {
			return nil, err
		}
		r := io.TeeReader(f, hasher)
		if err := u.Layer(ctx, r); err != nil {
			return nil, err
		}
		// The archive can end before the layer does, and the digest covers the whole layer.
		if _, err := io.Copy(io.Discard, r); err != nil {
			return nil, err
		}
		if err := compare(descriptors[i].Digest, hasher.Sum(nil)); err != nil {
			return nil, err
		}
	}

	return u.Files(), nil
}
