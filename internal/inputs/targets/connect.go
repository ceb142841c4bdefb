package targets

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/outbound"
)

// RefOf returns the Ref of a targetRef whose Secret is in namespace. It is empty for nil.
func RefOf(namespace string, ref *corev1alpha1.TargetReference) Ref {
	if ref == nil {
		return Ref{}
	}
	return Ref{Namespace: namespace, Name: ref.KubeconfigSecretRef.Name, Key: ref.KubeconfigSecretRef.KeyOrDefault()}
}

// Connect returns a configuration for requests to the server of a kubeconfig, and the UID of the
// namespace kube-system there. It is for users on their own machines and permits loopback
// addresses; otherwise it has the same rules as Targets. Errors quote only the server's address
// from the kubeconfig.
func Connect(ctx context.Context, kubeconfig []byte) (*rest.Config, types.UID, error) {
	config, err := Parse(kubeconfig)
	if err != nil {
		return nil, "", err
	}

	transport, authorized, err := authorize(config, outbound.Policy{Local: true}, false)
	if err != nil {
		return nil, "", err
	}

	id, err := probe(ctx, authorized, config.Host, config.BearerToken)
	if err != nil {
		transport.CloseIdleConnections()
		return nil, "", err
	}

	return &rest.Config{Host: config.Host, Transport: &explained{newGate(authorized, func() {}), config}, QPS: -1}, id, nil
}

// IsAway reports whether a request failed because it did not reach the target.
func IsAway(err error) bool { return errors.As(err, new(*awayError)) }

// authorize returns the transport for a kubeconfig, and a RoundTripper that adds the credentials to
// it.
func authorize(config *rest.Config, policy outbound.Policy, namespaced bool) (*http.Transport, http.RoundTripper, error) {
	transport, err := newTransport(config, policy, namespaced)
	if err != nil {
		return nil, nil, err
	}
	authorized, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, nil, refuse("user", "has credentials that cannot be used", ownAccount)
	}
	return transport, authorized, nil
}

// explained names the target in the errors of unanswered requests.
type explained struct {
	next   http.RoundTripper
	config *rest.Config
}

// RoundTrip implements http.RoundTripper.
func (e *explained) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := e.next.RoundTrip(r)
	if err != nil && r.Context().Err() == nil {
		return nil, Unreachable(e.config, err)
	}
	return resp, err
}
