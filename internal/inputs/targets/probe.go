package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
)

const targetErrorBytes = 512 // of the cause in a message

// awayError is why a target is not connected, in the form of a condition.
type awayError struct{ reason, message string }

// Error returns the message.
func (e *awayError) Error() string { return e.message }

// probe returns the UID of the namespace kube-system, which identifies a cluster.
func probe(ctx context.Context, transport http.RoundTripper, server, token string) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, limits.TargetProbeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(server, "/")+"/api/v1/namespaces/kube-system", http.NoBody)
	if err != nil {
		return "", refuse("cluster.server", "is not a URL", "give the https:// URL of the API server")
	}

	r.Header.Set("Accept", "application/json")
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return "", unreachable(r.URL, err, token)
	}

	defer resp.Body.Close()
	if err := answered(resp.StatusCode); err != nil {
		return "", err
	}

	var namespace struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"metadata"`
	}

	text, err := io.ReadAll(io.LimitReader(resp.Body, limits.KubeconfigBytes))
	if err != nil {
		return "", unreachable(r.URL, err, token)
	}
	if json.Unmarshal(text, &namespace) != nil || namespace.Kind != "Namespace" || namespace.Metadata.Name != "kube-system" ||
		namespace.Metadata.UID == "" || len(namespace.Metadata.UID) > limits.ClusterUIDBytes {
		return "", answered(0)
	}

	return namespace.Metadata.UID, nil
}

func unreachable(server *url.URL, err error, token string) error {
	var address *addressError
	if errors.As(err, &address) {
		return &RefusedError{Field: "cluster.server", Problem: "is not connected to", Remedy: address.Error()}
	}

	var secrets []string
	if token != "" {
		secrets = append(secrets, token)
	}

	cause := outbound.Redact(err.Error(), secrets...)
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status): // its message quotes the server
		cause = fmt.Sprintf("it answers with the status %d", status.Status().Code)
	case errors.Is(err, context.DeadlineExceeded):
		cause = fmt.Sprintf("no answer within %s", limits.TargetProbeTimeout)
	}

	host := outbound.ShowURL(&url.URL{Scheme: server.Scheme, Host: server.Host})
	return &awayError{corev1alpha1.ReasonTargetUnreachable, fmt.Sprintf("%s cannot be reached: %s", host, limits.Cut(cause, targetErrorBytes))}
}

// answered returns the meaning of a status code. Zero means that the answer is not a namespace.
func answered(status int) error {
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusUnauthorized:
		return &awayError{corev1alpha1.ReasonTargetUnauthorized, "the target does not accept the credentials of the kubeconfig: renew them"}
	case status == http.StatusForbidden:
		return &awayError{
			corev1alpha1.ReasonTargetUnauthorized,
			"the user of the kubeconfig may not get the namespace kube-system, which identifies the target: " +
				`bind a ClusterRole to it there with the rule {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}`,
		}
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return &awayError{corev1alpha1.ReasonTargetUnreachable, fmt.Sprintf("the target answers with the status %d", status)}
	}

	return &awayError{corev1alpha1.ReasonTargetUnreachable, "the server that answers is not the API server of a Kubernetes cluster: check cluster.server of the kubeconfig"}
}

// Unreachable returns the error of a request to the server of a kubeconfig. It does not quote the
// server's answer.
func Unreachable(config *rest.Config, err error) error {
	server, parseErr := url.Parse(config.Host)
	if parseErr != nil {
		return refuse("cluster.server", "is not a URL", "give the https:// URL of the API server")
	}
	return unreachable(server, err, config.BearerToken)
}
