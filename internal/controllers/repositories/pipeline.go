package repositories

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/objects"
)

// Pipeline turns a source into the content of a repository.
type Pipeline struct {
	Fetcher     *fetch.Fetcher
	Get         sources.Get
	Credentials *sources.Credentials
	// Namespace of the manager has the pull secrets of ImageConfigs.
	Namespace string
	// Memory is the account that the content of repositories is counted in.
	Memory *quota.Memory
	// Guard decides which Secrets are read for which accounts: for a PackageRepository for Account
	// in its namespace if that is required, otherwise for the manager.
	Guard           *sources.Guard
	Account         string
	AccountRequired bool
	// ClusterPullSecrets means that the manager's credentials and cache are for
	// ClusterPackageRepositories alone.
	ClusterPullSecrets bool

	fetches *queueing.Stages
	// account watches the manager's service account once its pull secrets are needed.
	account sync.Once
}

// job is one fetch.
type job struct {
	repository corev1alpha1.GenericPackageRepository
	namespace  string
	// known is the validator of the known content.
	known string
	// image is the decision of the policies about the image of the repository.
	image imagepolicy.Decision
	long  bool
}

// result is the result of a fetch.
type result struct {
	digest, revision, validator string
	notModified                 bool
	content                     *packed
	// verification is the result of verifying the image; nil if no signature is needed, or if it
	// was verified before.
	verification *imagepolicy.Outcome
}

// contentError is why fetched content is not a valid repository.
type contentError struct {
	err       error
	validator string
}

// Error implements error.
func (e *contentError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *contentError) Unwrap() error { return e.err }

// fetch fetches and reads a repository. Its error is a *fetch.Error, an *imagepolicy.Refusal, a
// *contentError, or of the API server.
func (p *Pipeline) fetch(ctx context.Context, j job) (fetched *result, err error) {
	source, problems, err := p.sourceOf(ctx, j)
	if err != nil {
		return nil, err
	}

	within, leave, err := p.fetches.Enter(ctx, j.repository.GetNamespace(), j.long)
	if err != nil {
		return nil, err
	}

	defer leave()
	fetched, err = p.fetchAndRead(within, source, j)
	if err != nil && errors.Is(context.Cause(within), queueing.ErrLong) {
		return nil, queueing.ErrLong
	}
	if err != nil && len(problems) > 0 {
		return nil, withProblems(err, problems)
	}

	return fetched, err
}

// fetchAndRead fetches a source and reads its offers. Memory is reserved only for content beyond a
// small size.
func (p *Pipeline) fetchAndRead(ctx context.Context, source fetch.Source, j job) (*result, error) {
	var releases []func()
	defer func() {
		for _, release := range releases {
			release()
		}
	}()

	source.Admit = sync.OnceValue(func() error { // until all of it is read and packed
		release, err := p.Memory.Acquire(ctx, j.repository.GetNamespace(), limits.LoadWeight*p.Memory.PackageBytes())
		if err == nil {
			releases = append(releases, release)
		}
		return err
	})

	fetched, err := p.Fetcher.Fetch(ctx, source, j.known)
	if err != nil {
		return nil, err
	}
	if fetched.NotModified {
		return &result{notModified: true, validator: fetched.Validator, verification: fetched.Verification}, nil
	}

	content, err := repository.ReadWith(fetched.Files, repository.Options{
		Withheld: fetched.FromSecrets, Bytes: p.Memory.PackageBytes(), Admit: source.Admit,
	})
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, &contentError{err: err, validator: fetched.Validator}
	}

	packed, err := pack(content)
	if err != nil {
		return nil, err
	}
	if err := p.Memory.Hold(memoryKey(j.repository.GetNamespace(), j.repository.GetName()), packed.bytes); err != nil {
		return nil, err
	}

	r := &result{digest: fetched.Digest, revision: fetched.Revision, validator: fetched.Validator, content: packed, verification: fetched.Verification}
	if len(fetched.FromSecrets) > 0 {
		r.digest, r.revision = packed.offers.String(), packed.offers.String() // of the published offers
	}
	return r, nil
}

// memoryKey is the key of a repository's memory.
func memoryKey(namespace, name string) quota.Key {
	return quota.Key{Namespace: namespace, Name: "the repository " + name}
}

// sourceOf reads the objects that a source names. problems are pull secrets that cannot be used.
func (p *Pipeline) sourceOf(ctx context.Context, j job) (source fetch.Source, problems []string, err error) {
	spec := &j.repository.RepositorySpec().Source
	source = fetch.Source{
		Spec: *spec, Namespace: j.repository.GetNamespace(), Image: j.image,
		Secrets: map[string]map[string][]byte{}, ConfigMaps: map[string]map[string]string{},
	}

	refs := refsOf(spec, j.namespace)
	reader, err := p.reader(j, refs)
	if err != nil {
		return source, nil, err
	}

	if spec.Image != nil {
		p.account.Do(p.Credentials.Follow)
		source.OwnOnly = p.ClusterPullSecrets && source.Namespace != ""
		source.Keychain, problems, err = p.Credentials.Keychain(ctx, reader, refs, sources.PullSecret(p.Namespace, j.image.PullSecret), source.OwnOnly)
		return source, problems, err
	}

	get := p.Guard.For(reader, p.Get)
	for _, ref := range refs {
		object, err := get(ctx, ref)
		if err != nil {
			return source, nil, err
		}
		if object == nil {
			continue
		}
		if object.Refused != "" {
			return source, nil, &fetch.Error{Details: fmt.Sprintf("%s is not read: %s", ref, object.Refused), Permanent: true}
		}
		if ref.Kind == sources.KindSecret {
			source.Secrets[ref.Name] = object.Data
			continue
		}
		texts := make(map[string]string, len(object.Data))
		for key, data := range object.Data {
			texts[key] = string(data)
		}
		source.ConfigMaps[ref.Name] = texts
	}

	return source, nil, nil
}

// reader returns the ServiceAccount that has to have the right to get the Secrets that a repository
// names.
func (p *Pipeline) reader(j job, refs []sources.Ref) (objects.Account, error) {
	secret := func(ref sources.Ref) bool { return ref.Kind == sources.KindSecret }
	switch namespace := j.repository.GetNamespace(); {
	case !p.AccountRequired || namespace == "" || !slices.ContainsFunc(refs, secret):
		return objects.Account{}, nil
	case p.Account == "":
		return objects.Account{}, &fetch.Error{
			Details:   "this manager reads the Secrets that a PackageRepository names only as the default ServiceAccount of its namespace, which it lacks",
			Remedy:    "Start it with --default-service-account, and let that account get the Secret; or use a ClusterPackageRepository.",
			Permanent: true,
		}
	default:
		return objects.Account{Namespace: namespace, Name: p.Account}, nil
	}
}

// withProblems adds the pull secrets that cannot be used to an error.
func withProblems(err error, problems []string) error {
	for _, problem := range problems {
		err = fmt.Errorf("%w (%s)", err, problem)
	}
	return err
}
