package webhooks

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Denied reports whether a webhook has denied a request, with a code that its author chose. A
// webhook that cannot be called is another error, and can recover.
func Denied(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	message := status.Status().Message
	return strings.Contains(message, "admission webhook ") && strings.Contains(message, " denied the request")
}
