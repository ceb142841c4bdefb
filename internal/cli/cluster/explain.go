package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Explain adds the remedy to an error of the API server; doing is such as "cannot create package
// shop/web".
func (c *Cluster) Explain(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: interrupted", doing)
	case Unserved(err):
		return fmt.Errorf("%s: the cluster at %s does not serve %s. Install the engine: kubectl apply --server-side -k config",
			doing, c.Host, corev1alpha1.GroupVersion)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w. Ask an administrator for a binding to the cluster role lockstep-admin; for cluster packages, for the rights of an administrator", doing, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the cluster at %s refuses these credentials: %w. Log in again, or choose another --context", doing, c.Host, err)
	case missingNamespace(err) != "":
		return fmt.Errorf("%s: %w. Create it: kubectl create namespace %s, or choose another with -n", doing, err, missingNamespace(err))
	}
	return c.unreachable(doing, err)
}

func (c *Cluster) unreachable(doing string, err error) error {
	var (
		certificate *tls.CertificateVerificationError
		request     *url.Error
		network     net.Error
	)
	switch {
	case errors.As(err, &certificate):
		return fmt.Errorf("%s: the certificate of the cluster at %s cannot be verified: %w. Check certificate-authority in the kubeconfig", doing, c.Host, certificate)
	case errors.As(err, &request):
		err = request.Err
	case !errors.As(err, &network):
		return fmt.Errorf("%s: %w", doing, err)
	}
	remedy := "Check that it runs, and that the context is the right one: kubectl config current-context"
	if c.Host == "http://localhost:8080" {
		remedy = "No kubeconfig was found: set KUBECONFIG or --kubeconfig"
		if named := os.Getenv("KUBECONFIG"); named != "" {
			remedy = fmt.Sprintf("No kubeconfig was found at KUBECONFIG=%s", named)
		}
	}
	return fmt.Errorf("%s: the cluster at %s cannot be reached: %w. %s", doing, c.Host, err, remedy)
}

func brief(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err.Error()
	}
	return err.Error()
}

// Unserved reports whether a 404 is about the kind, not the object.
func Unserved(err error) bool {
	details := notFound(err)
	return details != nil && slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// missingNamespace is the namespace that a creation lacks.
func missingNamespace(err error) string {
	if details := notFound(err); details != nil && details.Kind == "namespaces" {
		return details.Name
	}
	return ""
}

func notFound(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return nil
	}
	return status.Status().Details
}
