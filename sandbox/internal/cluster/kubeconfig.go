package cluster

import (
	"encoding/base64"
	"fmt"
)

// AdminUser is the user name in the kubeconfig of a sandbox, a member of system:masters.
const AdminUser = "sandbox-admin"

// identities are the users of a sandbox, with the file name (without extension) of their
// kubeconfig.
var identities = []struct {
	file, user string
	groups     []string
}{
	{file: "admin", user: AdminUser, groups: []string{"system:masters"}},
	{file: "supervisor", user: "sandbox-supervisor", groups: []string{"system:masters"}},
	{file: "kube-controller-manager", user: "system:kube-controller-manager"},
	{file: "kube-scheduler", user: "system:kube-scheduler"},
	{file: "kwok", user: "sandbox-kwok", groups: []string{"system:masters"}},
}

// kubeconfig returns a kubeconfig with all keys inline, so that a copy of the
// file works.
func kubeconfig(sandbox, server string, ca []byte, user string, pair keyPair) []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: sandbox-%[1]s
clusters:
- name: sandbox-%[1]s
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
contexts:
- name: sandbox-%[1]s
  context:
    cluster: sandbox-%[1]s
    user: %[4]q
users:
- name: %[4]q
  user:
    client-certificate-data: %[5]s
    client-key-data: %[6]s
`, sandbox, server, encode(ca), user, encode(pair.cert), encode(pair.key))
}
