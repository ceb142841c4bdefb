package cluster

import "path/filepath"

// layout names the files below a data folder.
type layout struct{ dir string }

func (l layout) state() string          { return filepath.Join(l.dir, "state.json") }
func (l layout) pki() string            { return filepath.Join(l.dir, "pki") }
func (l layout) logs() string           { return filepath.Join(l.dir, "logs") }
func (l layout) config() string         { return filepath.Join(l.dir, "config") }
func (l layout) etcdData() string       { return filepath.Join(l.dir, "etcd") }
func (l layout) registryData() string   { return filepath.Join(l.dir, "registry") }
func (l layout) auditLog() string       { return filepath.Join(l.dir, "audit.log") }
func (l layout) auditPolicy() string    { return filepath.Join(l.config(), "audit-policy.yaml") }
func (l layout) kwokConfig() string     { return filepath.Join(l.config(), "kwok.yaml") }
func (l layout) schedConfig() string    { return filepath.Join(l.config(), "kube-scheduler.yaml") }
func (l layout) caFile() string         { return filepath.Join(l.pki(), "ca.crt") }
func (l layout) caKeyFile() string      { return filepath.Join(l.pki(), "ca.key") }
func (l layout) servingCert() string    { return filepath.Join(l.pki(), "kube-apiserver.crt") }
func (l layout) servingKey() string     { return filepath.Join(l.pki(), "kube-apiserver.key") }
func (l layout) tokenKey() string       { return filepath.Join(l.pki(), "service-accounts.key") }
func (l layout) tokenPublicKey() string { return filepath.Join(l.pki(), "service-accounts.pub") }

// kubeconfig is the file of one of the identities.
func (l layout) kubeconfig(identity string) string {
	return filepath.Join(l.dir, identity+".kubeconfig")
}

// log is the file for a component's output. The supervisor's is called supervisor.
func (l layout) log(component string) string {
	return filepath.Join(l.logs(), component+".log")
}

// lock is next to the data folder, because that folder is removed and made again.
func (l layout) lock() string {
	return filepath.Join(filepath.Dir(l.dir), "."+filepath.Base(l.dir)+".lock")
}
