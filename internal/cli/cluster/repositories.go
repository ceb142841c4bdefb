package cluster

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/objects"
)

// repositoryKinds are the scopes of repositories by the kinds that kubectl accepts.
var repositoryKinds = map[string]corev1alpha1.Scope{
	"packagerepository": corev1alpha1.ScopeNamespaced, "packagerepositories": corev1alpha1.ScopeNamespaced,
	"clusterpackagerepository": corev1alpha1.ScopeCluster, "clusterpackagerepositories": corev1alpha1.ScopeCluster,
}

// ParseRepository parses NAME, packagerepository/NAME or clusterpackagerepository/NAME.
func ParseRepository(arg string) (Name, error) {
	kind, name, slash := strings.Cut(arg, "/")
	if !slash {
		return Name{Name: arg}, nil
	}
	scope, known := repositoryKinds[strings.TrimSuffix(strings.ToLower(kind), "."+corev1alpha1.GroupName)]
	if !known || name == "" || strings.Contains(name, "/") {
		return Name{}, fmt.Errorf("%q is not a name of a repository: write NAME, packagerepository/NAME or clusterpackagerepository/NAME", arg)
	}
	return Name{Scope: scope, Name: name}, nil
}

// NewRepository returns an empty repository of a scope and name.
func (c *Cluster) NewRepository(scope corev1alpha1.Scope, name string) corev1alpha1.GenericPackageRepository {
	r := scope.NewPackageRepository()
	r.SetName(name)
	if scope == corev1alpha1.ScopeNamespaced {
		r.SetNamespace(c.Namespace)
	}
	return r
}

// RepositoryText names a repository, as in "packagerepository shop/stable".
func RepositoryText(r corev1alpha1.GenericPackageRepository) string {
	kind := corev1alpha1.ScopeOf(r.GetNamespace()).Kind("PackageRepository")
	return objects.Key{Kind: strings.ToLower(kind), Namespace: r.GetNamespace(), Name: r.GetName()}.String()
}

// RepositoryFlags are the arguments that select a repository.
func RepositoryFlags(r corev1alpha1.GenericPackageRepository) string {
	text := strings.ToLower(corev1alpha1.ScopeOf(r.GetNamespace()).Kind("PackageRepository")) + "/" + r.GetName()
	if r.GetNamespace() != "" {
		text += " -n " + r.GetNamespace()
	}
	return text
}

// FindRepository reads a repository. Without a kind, it is the PackageRepository or else the
// ClusterPackageRepository of that name.
func (c *Cluster) FindRepository(ctx context.Context, n Name) (corev1alpha1.GenericPackageRepository, error) {
	scopes := []corev1alpha1.Scope{n.Scope}
	if n.Scope == "" {
		scopes = []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster}
	}

	for _, scope := range scopes {
		r := c.NewRepository(scope, n.Name)
		err := c.Get(ctx, client.ObjectKeyFromObject(r), r)
		switch {
		case err == nil:
			return r, nil
		case !apierrors.IsNotFound(err) || Unserved(err):
			return nil, c.Explain("cannot read "+RepositoryText(r), err)
		}
	}

	if len(scopes) == 1 {
		return nil, NotFoundError(fmt.Sprintf("there is no %s. See: kubectl package repo get", RepositoryText(c.NewRepository(n.Scope, n.Name))))
	}
	return nil, NotFoundError(fmt.Sprintf("there is neither a packagerepository %s in namespace %s nor a clusterpackagerepository of that name. See: kubectl package repo get -A",
		n.Name, c.Namespace))
}

// CompleteRepositories lists the readable names with a prefix.
func (c *Cluster) CompleteRepositories(ctx context.Context, begin string) (names []string) {
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewPackageRepositoryList()
		if c.List(ctx, list, client.InNamespace(c.NewRepository(scope, "").GetNamespace())) != nil {
			continue
		}
		for _, r := range list.GenericRepositories() {
			if strings.HasPrefix(r.GetName(), begin) {
				names = append(names, r.GetName())
			}
		}
	}
	return names
}

// RepositorySource returns the kind of a source in one word and its address, without possible
// credentials.
func RepositorySource(s *corev1alpha1.RepositorySource) (kind, address string) {
	switch {
	case s.Image != nil:
		return "image", s.Image.Ref
	case s.HTTP != nil:
		return "http", shownURL(s.HTTP.URL)
	case s.Git != nil:
		text := shownURL(s.Git.URL)
		if s.Git.Ref != "" {
			text += " " + s.Git.Ref
		}
		return "git", text
	case s.Inline != nil:
		return "inline", fmt.Sprintf("%d files", len(s.Inline.Files)+len(s.Inline.FilesFrom))
	}

	return "", ""
}

// shownURL returns an address without queries and users, which might be credentials. A user name of
// SSH is not a credential.
func shownURL(address string) string {
	u, err := url.Parse(address)
	shown := outbound.Conceal(address) // such as user@host:path, or an address that no client accepts
	if err == nil {
		u.RawQuery, u.Fragment, u.RawFragment = "", "", ""
		if u.Scheme != "ssh" {
			u.User = nil
		}
		shown = u.Redacted()
	}

	if at := strings.LastIndex(shown, "@"); (err != nil || u.Host == "") && at >= 0 && strings.Contains(shown[:at], ":") {
		return "…" + shown[at:]
	}
	return shown
}

// ConcealSource removes possible credentials from a source. The query of a URL might be a
// signature.
func ConcealSource(s *corev1alpha1.RepositorySource) {
	// conceal also shows that a query was removed, because the address would otherwise look
	// complete.
	conceal := func(address *string) {
		shown := shownURL(*address)
		if strings.Contains(*address, "?") && !strings.Contains(shown, "?") {
			shown += "?…"
		}
		*address = shown
	}

	if s.HTTP != nil {
		conceal(&s.HTTP.URL)
	}
	if s.Git != nil {
		conceal(&s.Git.URL)
	}
}

// RepositoryState returns the state of a repository in a word, and whether it works. Unknown means
// that a fetch is under way.
func RepositoryState(r corev1alpha1.GenericPackageRepository) (word string, works metav1.ConditionStatus) {
	ready := meta.FindStatusCondition(*r.StatusConditions(), corev1alpha1.ConditionReady)
	switch {
	case r.GetDeletionTimestamp() != nil:
		return "being deleted", metav1.ConditionUnknown
	case r.RepositorySpec().Paused:
		return "paused", metav1.ConditionUnknown
	case ready == nil:
		return "pending", metav1.ConditionUnknown
	// A condition of an earlier generation does not describe the current source.
	case ready.Status == metav1.ConditionTrue && ready.ObservedGeneration >= r.GetGeneration():
		if meta.IsStatusConditionTrue(*r.StatusConditions(), corev1alpha1.ConditionConflicting) {
			return "conflicting", metav1.ConditionFalse
		}
		return "ready", metav1.ConditionTrue
	case ready.Status == metav1.ConditionFalse && ready.Reason != "":
		return ready.Reason, metav1.ConditionFalse
	}

	return "fetching", metav1.ConditionUnknown
}
