package fetch

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"lockstep.run/lockstep/test/gittest"
	"lockstep.run/lockstep/test/require"
)

// sshServer runs git-upload-pack for one key.
type sshServer struct {
	t        *testing.T
	listener net.Listener
	config   *ssh.ServerConfig
	known    string // the line of known_hosts
	key      string // the private key of the user
	setenv   bool   // it accepts variables
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)
	return signer, pem.EncodeToMemory(block)
}

func serveSSH(t *testing.T, setenv bool) *sshServer {
	t.Helper()
	host, _ := newKey(t)
	user, key := newKey(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	s := &sshServer{
		t: t, listener: listener, setenv: setenv, key: string(key),
		known: knownhosts.Line([]string{knownhosts.Normalize(listener.Addr().String())}, host.PublicKey()),
	}

	s.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if string(k.Marshal()) != string(user.PublicKey().Marshal()) {
			return nil, io.EOF
		}
		return nil, nil
	}}

	s.config.AddHostKey(host)
	go s.accept()
	return s
}

func (s *sshServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.serve(conn)
	}
}

func (s *sshServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}

	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		environment := append(os.Environ(), gittest.Environment...)
		for r := range requests {
			switch r.Type {
			case "env":
				_ = r.Reply(s.setenv, nil)
				if s.setenv {
					environment = append(environment, "GIT_PROTOCOL=version=2")
				}
			case "exec":
				_ = r.Reply(true, nil)
				var payload struct{ Command string }
				_ = ssh.Unmarshal(r.Payload, &payload)
				cmd := exec.Command("sh", "-c", payload.Command)
				cmd.Env, cmd.Stdout, cmd.Stderr = environment, channel, channel.Stderr()
				stdin, err := cmd.StdinPipe()
				if err != nil || cmd.Start() != nil {
					return
				}
				go func() { _, _ = io.Copy(stdin, channel) }()
				go func() {
					_ = cmd.Wait()
					_ = channel.Close()
				}()
			}
		}
	}
}

func (s *sshServer) source(g *gitRepository, dir string) Source {
	source := g.source("main")
	source.Spec.Git.URL = "ssh://git@" + s.listener.Addr().String() + dir
	return withSecret(source, map[string]string{"ssh-privatekey": s.key, "known_hosts": s.known})
}

// ssh gives the same results as http, with either version of the protocol.
func TestGitSSH(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	commit := g.Commit(map[string]string{"packages/a.yaml": "a"})
	for _, setenv := range []bool{true, false} {
		s := serveSSH(t, setenv)
		source := s.source(g, g.Dir)
		r := fetched(t, local(), source, "")
		if string(r.Files["packages/a.yaml"]) != "a" || r.Revision != "main@"+commit {
			t.Errorf("%+v", r)
		}
		if again := fetched(t, local(), source, r.Validator); !again.NotModified {
			t.Errorf("%+v", again)
		}
	}
}

// encrypted returns a key with a passphrase.
func encrypted(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("geheim12"))
	require.NoError(t, err)
	return string(pem.EncodeToMemory(block))
}

func TestGitSSHErrors(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.Commit(map[string]string{"a.yaml": "a"})
	s := serveSSH(t, true)
	other, otherKey := newKey(t)
	host := s.listener.Addr().String()
	with := func(key, value string) Source {
		source := s.source(g, g.Dir)
		source.Secrets["login"][key] = []byte(value)
		return source
	}

	where := "git: ssh://" + host + g.Dir + ": "
	for _, test := range []struct {
		name   string
		source Source
		texts  []string
	}{
		{"no known_hosts", with("known_hosts", ""), []string{`the Secret "login" has no known_hosts, so that 127.0.0.1 cannot be verified. Add what "ssh-keyscan 127.0.0.1" prints`}},
		{"unknown host", with("known_hosts", knownhosts.Line([]string{"elsewhere"}, other.PublicKey())), []string{where, "the host key of 127.0.0.1 is not in known_hosts. Add its lines to known_hosts."}},
		{"changed host key", with("known_hosts", knownhosts.Line([]string{knownhosts.Normalize(host)}, other.PublicKey())), []string{where, "the host key of 127.0.0.1 is another than the one in known_hosts."}},
		{"damaged known_hosts", with("known_hosts", "geheim geheim geheim"), []string{`the known_hosts of the Secret "login" cannot be read`}},
		{"no key", with("ssh-privatekey", ""), []string{"there is no ssh-privatekey for 127.0.0.1. Name a Secret with ssh-privatekey and known_hosts."}},
		{"key with a passphrase", with("ssh-privatekey", encrypted(t)), []string{`the ssh-privatekey of the Secret "login" cannot be read. Use a key without a passphrase`}},
		{"damaged key", with("ssh-privatekey", "geheim"), []string{`the ssh-privatekey of the Secret "login" cannot be read`}},
		{"other key", with("ssh-privatekey", string(otherKey)), []string{where, "127.0.0.1 does not accept the key. Check the ssh-privatekey"}},
		{"no repository", s.source(g, "/no/such/it's"), []string{"the server reports: fatal: '/no/such/it's' does not appear to be a git repository"}},
	} {
		_, err := local().Fetch(t.Context(), test.source, "")
		checkError(t, err, true, test.texts...)
		if strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: %v", test.name, err)
		}
	}

	_, err := New(Options{}).Fetch(t.Context(), s.source(g, g.Dir), "")
	checkError(t, err, true, "127.0.0.1 is a loopback or link-local address, which sources may not be fetched from.")
}
