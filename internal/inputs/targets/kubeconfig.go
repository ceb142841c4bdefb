package targets

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"lockstep.run/lockstep/internal/limits"
)

// RefusedError is why a kubeconfig is not used.
type RefusedError struct {
	// Field is the field of the kubeconfig; empty if the error concerns the whole kubeconfig.
	Field string
	// Problem follows the field's name in the message. Remedy is a sentence.
	Problem, Remedy string
}

// Error names the field, the problem and the remedy.
func (e *RefusedError) Error() string {
	text := "the kubeconfig " + e.Problem
	if e.Field != "" {
		text = fmt.Sprintf("the kubeconfig's %s %s", e.Field, e.Problem)
	}
	return text + ": " + e.Remedy
}

func refuse(field, problem, remedy string) error { return &RefusedError{field, problem, remedy} }

// Parse reads the current context of a kubeconfig. The result has the server, certificates and
// token. The error is a *RefusedError, and quotes no part of the kubeconfig.
func Parse(data []byte) (*rest.Config, error) { return parse(data, false) }

// parse is Parse. tokenFile permits a file with the token.
func parse(data []byte, tokenFile bool) (*rest.Config, error) {
	_, cluster, user, err := decode(data)
	if err != nil {
		return nil, err
	}
	if err := checkCluster(cluster); err != nil {
		return nil, err
	}

	config := &rest.Config{
		Host: cluster.Server, BearerToken: user.Token,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
			CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
	}
	if tokenFile {
		config.BearerTokenFile = user.TokenFile
		user.TokenFile = ""
	}
	if err := checkUser(user, config.BearerTokenFile != ""); err != nil {
		return nil, err
	}

	return config, checkCertificates(config)
}

// decode returns a kubeconfig with the cluster and the user of its current context.
func decode(data []byte) (*clientcmdapi.Config, *clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	if len(data) > limits.KubeconfigBytes {
		return nil, nil, nil, refuse("", fmt.Sprintf("has %d bytes; the limit is %d", len(data), limits.KubeconfigBytes), "leave only one context in it")
	}

	all, err := clientcmd.Load(data)
	if err != nil {
		return nil, nil, nil, refuse("", "is not valid", "store the output of kubectl config view --raw --minify --flatten")
	}

	const remedy = "name one that it has"
	context := all.Contexts[all.CurrentContext]
	switch {
	case context == nil:
		return nil, nil, nil, refuse("current-context", "is not one of its contexts", remedy)
	case all.Clusters[context.Cluster] == nil:
		return nil, nil, nil, refuse("context.cluster", "is not one of its clusters", remedy)
	case all.AuthInfos[context.AuthInfo] == nil:
		return nil, nil, nil, refuse("context.user", "is not one of its users", remedy)
	}

	return all, all.Clusters[context.Cluster], all.AuthInfos[context.AuthInfo], nil
}

// refusal is a field that must be empty.
type refusal struct {
	field           string
	set             bool
	problem, remedy string
}

func first(all []refusal) error {
	for _, r := range all {
		if r.set {
			return refuse(r.field, r.problem, r.remedy)
		}
	}
	return nil
}

const (
	ofManager  = "would be read from the manager's own files"
	embed      = "embed the data: kubectl config view --raw --minify --flatten"
	runs       = "would run a program in the manager"
	ownAccount = "use the token of a ServiceAccount of the target, or a client certificate"
)

func checkCluster(c *clientcmdapi.Cluster) error {
	err := first([]refusal{
		{"cluster.certificate-authority", c.CertificateAuthority != "", ofManager, embed},
		{"cluster.insecure-skip-tls-verify", c.InsecureSkipTLSVerify, "would send credentials to any server that answers", "give certificate-authority-data"},
		{"cluster.proxy-url", c.ProxyURL != "", "is not supported", "remove it: the proxy of the manager's environment applies"},
	})
	if err != nil {
		return err
	}

	const remedy = "give the https:// URL of the API server"
	server, err := url.Parse(c.Server)
	switch {
	case err != nil, server.Host == "", server.Opaque != "":
		return refuse("cluster.server", "is not a URL", remedy)
	case server.Scheme != "https":
		return refuse("cluster.server", "is not https", remedy)
	case server.User != nil, server.RawQuery != "", server.Fragment != "":
		return refuse("cluster.server", "has more than host, port and path", remedy)
	}

	return nil
}

func checkUser(u *clientcmdapi.AuthInfo, authorized bool) error {
	err := first([]refusal{
		{"user.exec", u.Exec != nil, runs, ownAccount},
		{"user.auth-provider", u.AuthProvider != nil, runs, ownAccount},
		{"user.tokenFile", u.TokenFile != "", ofManager, "embed the token"},
		{"user.client-certificate", u.ClientCertificate != "", ofManager, embed},
		{"user.client-key", u.ClientKey != "", ofManager, embed},
		{"user.as", u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0, "would impersonate others", ownAccount},
		{"user.username", u.Username != "" || u.Password != "", "is no longer supported by Kubernetes", ownAccount},
	})
	if err == nil && !authorized && u.Token == "" && len(u.ClientCertificateData) == 0 {
		return refuse("user", "has no credentials", ownAccount)
	}

	return err
}

func checkCertificates(c *rest.Config) error {
	if len(c.CAData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CAData) {
		return refuse("cluster.certificate-authority-data", "has no certificate", "give certificates in PEM")
	}
	if len(c.CertData) == 0 && len(c.KeyData) == 0 {
		return nil
	}
	if _, err := tls.X509KeyPair(c.CertData, c.KeyData); err != nil {
		return refuse("user.client-certificate-data", "and client-key-data do not make a pair", "give both, in PEM")
	}
	return nil
}
