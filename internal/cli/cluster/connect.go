package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/version"
)

// defaultHost is the address that client-go uses without a kubeconfig.
const defaultHost = "http://localhost:8080"

// Cluster is a connection to an API server.
type Cluster struct {
	client.WithWatch
	// Namespace of the flags, or the context's if no flag names one.
	Namespace string
	// NamespaceGiven means that a flag names the namespace. A bare name is then a Package's.
	NamespaceGiven bool
	// Host is the address of the API server.
	Host string
	// Config is nil in tests without an API server.
	Config *rest.Config

	clock *clock
}

// Connect creates a client from the kubeconfig and the flags. It sends no request yet. Warnings of
// the API server are written to warnings.
func Connect(getter genericclioptions.RESTClientGetter, warnings io.Writer) (*Cluster, error) {
	loader := getter.ToRawKubeConfigLoader()
	namespace, given, err := loader.Namespace()
	if err != nil {
		return nil, explainConfig(err)
	}
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, explainConfig(err)
	}

	config.UserAgent = "kubectl-package/" + version.Get()
	config.WarningHandler = rest.NewWarningWriter(escaped{warnings}, rest.WarningWriterOptions{Deduplicate: true})
	// The default of client-go, 5 requests per second, is too slow for whole catalogues.
	config.QPS, config.Burst = 50, 100
	server := &clock{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dated{next, server} })
	c, err := New(config.Host, namespace, func(o client.Options) (client.WithWatch, error) {
		return client.NewWithWatch(config, o)
	})
	if err != nil {
		return nil, explainConfig(err)
	}

	c.Config, c.NamespaceGiven, c.clock = config, given, server
	return c, nil
}

// New makes a Cluster from a client that knows the kinds of this project.
func New(host, namespace string, build func(client.Options) (client.WithWatch, error)) (*Cluster, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1alpha1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := build(client.Options{Scheme: scheme, Mapper: mapper()})
	if err != nil {
		return nil, err
	}
	return &Cluster{WithWatch: c, Namespace: namespace, Host: host, clock: &clock{}}, nil
}

// mapper knows the kinds of this project and the few others that commands read, so that no
// discovery is needed.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(corev1alpha1.GroupVersion.WithKind("ImageConfig"), meta.RESTScopeRoot)
	for _, kind := range []string{"ConfigMap", "Secret"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}

	for _, kind := range []string{"Package", "ObjectDeployment", "ObjectSet", "ObjectSlice", "PackageRepository", "AvailablePackage"} {
		m.Add(corev1alpha1.GroupVersion.WithKind(corev1alpha1.ScopeNamespaced.Kind(kind)), meta.RESTScopeNamespace)
		m.Add(corev1alpha1.GroupVersion.WithKind(corev1alpha1.ScopeCluster.Kind(kind)), meta.RESTScopeRoot)
	}
	return m
}

// explainConfig adds the remedy to an error of the kubeconfig.
func explainConfig(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("the kubeconfig cannot be read: %w. Check --kubeconfig and KUBECONFIG", err)
	}
	return fmt.Errorf("the kubeconfig cannot be used: %w. Check --kubeconfig, KUBECONFIG and --context", err)
}

// escaped escapes control characters. Webhooks write warnings, and could otherwise control the
// terminal.
type escaped struct{ io.Writer }

// Write implements io.Writer.
func (e escaped) Write(text []byte) (int, error) {
	_, err := io.WriteString(e.Writer, terminal.Text(string(text)))
	return len(text), err
}

// AnyKind returns a client for all kinds, which uses discovery.
func (c *Cluster) AnyKind() (client.Client, error) {
	// A connection of a test has no configuration.
	if c.Config == nil {
		return nil, errors.New("there is no API server")
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	made, err := client.New(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client for all kinds: %w", err)
	}

	return made, nil
}

// Explain adds the remedy to an error of the API server. doing is a text such as "cannot create
// package shop/web".
func (c *Cluster) Explain(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: interrupted", doing)
	case Unserved(err):
		return fmt.Errorf("%s: the cluster at %s does not serve %s. Install the engine: kubectl apply --server-side -k config",
			doing, c.Host, corev1alpha1.GroupVersion)
	case unserved(err) != nil:
		return fmt.Errorf("%s: %w. The cluster at %s no longer serves this kind, or not yet. Try again in a moment", doing, err, c.Host)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w. Ask an administrator for a binding to the cluster role lockstep-admin; for cluster packages, for the rights of an administrator", doing, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the cluster at %s refuses these credentials: %w. Log in again, or choose another --context", doing, c.Host, err)
	case targets.IsAway(err):
		return fmt.Errorf("%s: %w", doing, err)
	// The API server reports a missing namespace as if the object itself was not found.
	case missingNamespace(err) != "":
		return fmt.Errorf("%s: %w. Create it: kubectl create namespace %s, or choose another with -n", doing, err, missingNamespace(err))
	}

	return c.unreachable(doing, err)
}

// unreachable explains an error without an answer of the API server.
func (c *Cluster) unreachable(doing string, err error) error {
	var (
		certificate *tls.CertificateVerificationError
		request     *url.Error
		network     net.Error
	)
	switch {
	case errors.As(err, &certificate):
		return fmt.Errorf("%s: the certificate of the cluster at %s cannot be verified: %w. Check certificate-authority in the kubeconfig", doing, c.Host, certificate)
	// The text of url.Error repeats the URL, which the message already has.
	case errors.As(err, &request):
		err = request.Err
	case !errors.As(err, &network):
		return fmt.Errorf("%s: %w", doing, err)
	}

	// client-go silently uses its default address if there is no kubeconfig.
	if c.Host == defaultHost {
		if named := os.Getenv("KUBECONFIG"); named != "" {
			return fmt.Errorf("%s: no kubeconfig was found at KUBECONFIG=%s. Set it to an existing file, or set --kubeconfig", doing, named)
		}
		return fmt.Errorf("%s: no kubeconfig was found. Set KUBECONFIG or --kubeconfig", doing)
	}

	return fmt.Errorf("%s: the cluster at %s cannot be reached: %w. Check that it runs, and that the context is the right one: kubectl config current-context",
		doing, c.Host, err)
}

// brief returns an error without the method and URL of its request.
func brief(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err.Error()
	}
	return err.Error()
}

// Unserved reports whether a 404 is about the kinds of this project rather than the object.
func Unserved(err error) bool {
	details := unserved(err)
	return details != nil && details.Group == corev1alpha1.GroupName
}

// unserved returns the details of a 404 that is about a kind rather than the object.
func unserved(err error) *metav1.StatusDetails {
	details := notFound(err)
	// Only a 404 for an unknown path has this cause. For an unknown object, the API server names no
	// cause.
	if details == nil || !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	}) {
		return nil
	}
	return details
}

// missingNamespace is the namespace that a creation lacks.
func missingNamespace(err error) string {
	if details := notFound(err); details != nil && details.Kind == "namespaces" {
		return details.Name
	}
	return ""
}

// notFound returns the details of a 404; nil for another error or a 404 without details.
func notFound(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return nil
	}
	return status.Status().Details
}

// Remote is the cluster that a targetRef leads to.
type Remote struct {
	// Cluster has Host, Config and AnyKind, for the user of the kubeconfig.
	*Cluster
	// ID and Home are the UIDs of the namespace kube-system there and here.
	ID, Home types.UID
}

// Remote connects to the cluster of a targetRef of a package in a namespace, which is empty for a
// ClusterPackage. It returns nil for nil. The Secret is read with the rights of the caller. Errors
// quote only the server's address from the kubeconfig.
func (c *Cluster) Remote(ctx context.Context, namespace string, ref *corev1alpha1.TargetReference) (*Remote, error) {
	if ref == nil {
		return nil, nil
	}

	at := targets.RefOf(cmp.Or(namespace, corev1alpha1.DefaultNamespace), ref)
	kubeconfig, err := c.kubeconfig(ctx, at)
	if err != nil {
		return nil, err
	}
	home := &metav1.PartialObjectMetadata{}
	home.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err = c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, home)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the namespace %s, which identifies this cluster in the owners of objects, cannot be read: "+
			"you lack the right get on namespaces/%s", metav1.NamespaceSystem, metav1.NamespaceSystem)
	case err != nil:
		return nil, c.Explain("cannot read the namespace "+metav1.NamespaceSystem, err)
	}

	config, id, err := targets.Connect(ctx, kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s, key %s: %w", at, at.Key, err)
	}
	if id == home.UID {
		// Two owners of one object in the same cluster would both control it.
		return nil, fmt.Errorf("%s, key %s: the kubeconfig leads to the cluster of the package itself: leave targetRef out", at, at.Key)
	}

	config.UserAgent = "kubectl-package/" + version.Get()
	return &Remote{Cluster: &Cluster{Host: config.Host, Config: config}, ID: id, Home: home.UID}, nil
}

// At returns the cluster that holds the objects of a package: its targetRef's, or c if it has none.
func (c *Cluster) At(ctx context.Context, namespace string, ref *corev1alpha1.TargetReference) (*Cluster, error) {
	remote, err := c.Remote(ctx, namespace, ref)
	if err != nil || remote == nil {
		return c, err
	}
	return remote.Cluster, nil
}

// AnyKindAt returns a client for all kinds of the cluster that At returns.
func (c *Cluster) AnyKindAt(ctx context.Context, namespace string, ref *corev1alpha1.TargetReference) (client.Client, error) {
	at, err := c.At(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	return at.AnyKind()
}

// kubeconfig reads the Secret of a targetRef.
func (c *Cluster) kubeconfig(ctx context.Context, at targets.Ref) ([]byte, error) {
	secret := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: at.Name}, secret)
	data, has := secret.Data[at.Key]
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%s, which has the kubeconfig of spec.targetRef, cannot be read: you lack the right get on secrets/%s in namespace %s. "+
			"Without it, render the package: kubectl package render", at, at.Name, at.Namespace)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s, which should have the kubeconfig of spec.targetRef, does not exist: create it", at)
	case err != nil:
		return nil, c.Explain("cannot read "+at.String(), err)
	case !has:
		return nil, fmt.Errorf("%s has no key %q, which spec.targetRef names: create it", at, at.Key)
	}

	return data, nil
}
