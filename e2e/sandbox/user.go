package sandbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// userLifetime is the validity of users' certificates.
const userLifetime = 30 * 24 * time.Hour

// User returns a client configuration for a user of the given name and groups,
// without client-side throttling. The user only has the rights that RBAC grants;
// members of system:masters have all.
func (s *Sandbox) User(name string, groups ...string) (*rest.Config, error) {
	cert, key, err := s.sign(name, groups)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for user %s: %w", name, err)
	}
	config := &rest.Config{Host: s.info.Server, QPS: -1}
	config.CAFile = s.info.CAFile
	config.CertData, config.KeyData = cert, key
	return config, nil
}

// UserKubeconfig is [Sandbox.User] for another program: it writes a kubeconfig
// with all keys inline and returns its path.
func (s *Sandbox) UserKubeconfig(name string, groups ...string) (string, error) {
	cert, key, err := s.sign(name, groups)
	if err != nil {
		return "", fmt.Errorf("making a certificate for user %s: %w", name, err)
	}
	authority, err := os.ReadFile(s.info.CAFile)
	if err != nil {
		return "", fmt.Errorf("making a kubeconfig for user %s: %w", name, err)
	}
	config := api.NewConfig()
	config.Clusters[s.info.Name] = &api.Cluster{Server: s.info.Server, CertificateAuthorityData: authority}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[s.info.Name] = &api.Context{Cluster: s.info.Name, AuthInfo: name}
	config.CurrentContext = s.info.Name
	path := filepath.Join(s.info.DataDir, fmt.Sprintf("user-%x.kubeconfig", name))
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of user %s: %w", name, err)
	}
	return path, nil
}

// sign issues a client certificate for a user and groups.
func (s *Sandbox) sign(name string, groups []string) (cert, key []byte, err error) {
	authority, err := tls.LoadX509KeyPair(s.info.CAFile, s.info.CAKeyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the sandbox's authority: %w", err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(userLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, private.Public(), authority.PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	encode := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER), nil
}
