package scenarios_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
)

// session is the Secret that the manager's token is bound to: without it the
// token is not valid.
const session = "session"

// rightsCommands give and take the manager's credentials and rights.
var rightsCommands = commands{
	// credentials issue: managers started from now on read their token from a file,
	// as a pod does, and the file has a new token.
	// credentials revoke: invalidates the token of the file, and waits until the API
	// server refuses it.
	"credentials": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 1 && slices.Contains([]string{"issue", "revoke"}, args[0]), "credentials issue|revoke")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: session}}
		path := filepath.Join(s.cluster().DataDir(), "manager.token")
		if args[0] == "issue" {
			s.env.Create(s, secret)
			s.check(os.WriteFile(path, []byte(s.boundToken(secret)), 0o600))
			s.readTokenFrom(path)
			return
		}
		token, err := os.ReadFile(path)
		s.check(err)
		s.check(s.env.Client.Delete(s.Context(), secret))
		s.awaitInvalid(string(token))
	},
}

// boundToken returns a token of the manager that is valid as long as the Secret exists.
func (s *scenario) boundToken(secret *corev1.Secret) string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: config.ServiceAccount}}
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID},
	}}
	s.check(s.env.Client.SubResource("token").Create(s.Context(), account, req))
	return req.Status.Token
}

// readTokenFrom makes the manager's kubeconfig name a file with the token.
func (s *scenario) readTokenFrom(path string) {
	kubeconfig, err := clientcmd.LoadFromFile(s.env.ManagerKubeconfig)
	s.check(err)
	for _, user := range kubeconfig.AuthInfos {
		user.Token, user.TokenFile = "", path
	}
	s.check(clientcmd.WriteToFile(*kubeconfig, s.env.ManagerKubeconfig))
}

// awaitInvalid waits until the API server refuses a token: it remembers for some
// seconds that it was valid.
func (s *scenario) awaitInvalid(token string) {
	with := rest.AnonymousClientConfig(s.env.Config())
	with.BearerToken = token
	client, err := discovery.NewDiscoveryClientForConfig(with)
	s.check(err)
	s.eventually(patience, "the token to be refused", func(ctx context.Context) error {
		_, err := client.RESTClient().Get().AbsPath("/api/v1").DoRaw(ctx)
		if apierrors.IsUnauthorized(err) {
			return nil
		}
		return errors.Join(err, errors.New("the token is not refused"))
	})
}
