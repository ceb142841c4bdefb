package targets

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
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
	all, err := decode(data)
	if err != nil {
		return nil, err
	}

	cluster, user, err := current(all)
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

func decode(data []byte) (*clientcmdv1.Config, error) {
	if len(data) > limits.KubeconfigBytes {
		return nil, refuse("", fmt.Sprintf("has %d bytes; the limit is %d", len(data), limits.KubeconfigBytes), "leave only one context in it")
	}

	var value any
	documents := 0
	wrong := document.Each("", data, func(d *document.Document) {
		documents++
		value = d.Value
	})

	switch {
	case len(wrong) > 0 && wrong[0].Line > 0:
		return nil, refuse("", fmt.Sprintf("is not valid YAML in line %d", wrong[0].Line), "store the output of kubectl config view --raw --minify --flatten")
	case len(wrong) > 0, documents != 1:
		return nil, refuse("", "is not one YAML document", "store the output of kubectl config view --raw --minify --flatten")
	}

	text, err := json.Marshal(value)
	all := &clientcmdv1.Config{}
	if err != nil || json.Unmarshal(text, all) != nil {
		return nil, refuse("", "has fields of other types than a kubeconfig", "store the output of kubectl config view --raw --minify --flatten")
	}

	return all, nil
}

// current returns the cluster and the user of the current context.
func current(all *clientcmdv1.Config) (*clientcmdv1.Cluster, *clientcmdv1.AuthInfo, error) {
	const remedy = "name one that it has"
	var context *clientcmdv1.Context
	for i := range all.Contexts {
		if all.Contexts[i].Name == all.CurrentContext {
			context = &all.Contexts[i].Context
			break
		}
	}

	if context == nil {
		return nil, nil, refuse("current-context", "is not one of its contexts", remedy)
	}

	var cluster *clientcmdv1.Cluster
	for i := range all.Clusters {
		if all.Clusters[i].Name == context.Cluster {
			cluster = &all.Clusters[i].Cluster
			break
		}
	}

	if cluster == nil {
		return nil, nil, refuse("context.cluster", "is not one of its clusters", remedy)
	}

	for i := range all.AuthInfos {
		if all.AuthInfos[i].Name == context.AuthInfo {
			return cluster, &all.AuthInfos[i].AuthInfo, nil
		}
	}

	return nil, nil, refuse("context.user", "is not one of its users", remedy)
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

func checkCluster(c *clientcmdv1.Cluster) error {
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

func checkUser(u *clientcmdv1.AuthInfo, authorized bool) error {
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
