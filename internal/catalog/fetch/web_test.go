package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func webSource(address string) Source {
	return Source{Spec: corev1alpha1.RepositorySource{HTTP: &corev1alpha1.RepositoryHTTPSource{URL: address}}}
}

func withSecret(s Source, data map[string]string) Source {
	bytesOf := map[string][]byte{}
	for key, v := range data {
		bytesOf[key] = []byte(v)
	}
	s.Secrets = map[string]map[string][]byte{"login": bytesOf}
	ref := &corev1alpha1.LocalSecretReference{Name: "login"}
	if s.Spec.HTTP != nil {
		s.Spec.HTTP.SecretRef = ref
	} else {
		s.Spec.Git.SecretRef = ref
	}
	return s
}

func local() *Fetcher { return New(Options{Policy: outbound.Policy{Local: true}}) }

func serveWeb(t *testing.T, start func(http.Handler) *httptest.Server, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := start(handle)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	return s
}

func serveBytes(t *testing.T, data []byte) string {
	t.Helper()
	return serveWeb(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }).URL
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

func TestWebContent(t *testing.T) {
	t.Parallel()
	archive := tarOf(t, map[string]string{"./repo-1/packages/a.yaml": "a", "repo-1/README.md": "r", "x.yaml": "x"})
	for _, test := range []struct {
		name, path, subPath string
		body                []byte
		want                map[string]string
		problem             string
	}{
		{"tar", "/r.tar", "repo-1", archive, map[string]string{"packages/a.yaml": "a"}, ""},
		{"tar with gzip", "/r.tgz", "", gzipped(archive), map[string]string{"repo-1/packages/a.yaml": "a", "x.yaml": "x"}, ""},
		{"YAML", "/shop.yaml", "", []byte("kind: x\n"), map[string]string{"shop.yaml": "kind: x\n"}, ""},
		{"YAML with gzip", "/shop.yaml.gz", "", gzipped([]byte("kind: x\n")), map[string]string{"shop.yaml": "kind: x\n"}, ""},
		{"YAML without a name", "/", "", []byte("kind: x\n"), map[string]string{"repository.yaml": "kind: x\n"}, ""},
		{"subPath of a file", "/shop.yaml", "a", []byte("kind: x\n"), nil, "http.subPath: the file is not a tar archive. Leave it out, or serve a tar archive."},
		{"subPath that is not there", "/r.tar", "b", archive, nil, `http.subPath: there is no *.yaml, *.yml or *.json file below "b"`},
		{"binary", "/r.tar", "", []byte("PK\x03\x04\x00\x00"), nil, "the file is neither a tar archive, with or without gzip, nor YAML"},
		{"page", "/r.tar", "", []byte("<!doctype html><html>"), nil, "the file is a page for browsers, no YAML"},
		{"truncated archive", "/r.tar", "", archive[:len(archive)-1800], nil, "it is not a complete tar archive"},
		{"truncated gzip", "/r.tgz", "", gzipped(archive)[:100], nil, "the file is damaged"},
		{"path out of the archive", "/r.tar", "", tarOf(t, map[string]string{"../../etc/x.yaml": "x"}), nil, `entry refused: entry "../../etc/x.yaml": the path leads out of its folder`},
		{"absolute path", "/r.tar", "", tarOf(t, map[string]string{"/etc/x.yaml": "x"}), nil, "the path is absolute"},
		{"no files in it", "/r.tar", "", tarOf(t, map[string]string{"README": "x"}), nil, "http holds no *.yaml, *.yml or *.json file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := webSource(serveBytes(t, test.body) + test.path)
			s.Spec.HTTP.SubPath = test.subPath
			r, err := local().Fetch(t.Context(), s, "")
			if test.problem != "" {
				checkError(t, err, true, test.problem, "http: http://127.0.0.1:")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, text(r.Files))
		})
	}
}

// An archive can contain links next to the files that are read. They are not followed.
func TestLinksOfArchives(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "latest", Typeflag: tar.TypeSymlink, Linkname: "/etc"})
	_ = w.WriteHeader(&tar.Header{Name: "a.yaml", Typeflag: tar.TypeReg, Size: 1})
	_, _ = w.Write([]byte("a"))
	_ = w.Flush()
	beside := bytes.Clone(b.Bytes())
	_ = w.WriteHeader(&tar.Header{Name: "b.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
	_ = w.Close()
	r := fetched(t, local(), webSource(serveBytes(t, append(beside, make([]byte, 1024)...))), "")
	require.Equal(t, map[string]string{"a.yaml": "a"}, text(r.Files))
	_, err := local().Fetch(t.Context(), webSource(serveBytes(t, b.Bytes())), "")
	checkError(t, err, true, `entry refused: entry "b.yaml": it is a symbolic link. Only files and folders are read; replace it by a copy.`)
}

// A server that supports conditional requests sends the file once. With other servers, equal
// content does not count as new.
func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"Etag", "Last-Modified", ""} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			body, tag, sent := "kind: a\n", `"1"`, 0
			if header == "Last-Modified" {
				tag = "Wed, 21 Oct 2015 07:28:00 GMT"
			}
			s := serveWeb(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
				if header != "" {
					w.Header().Set(header, tag)
				}
				if header == "Etag" && r.Header.Get("If-None-Match") == tag || header == "Last-Modified" && r.Header.Get("If-Modified-Since") == tag {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				sent++
				_, _ = io.WriteString(w, body)
			})
			source := webSource(s.URL + "/shop.yaml")
			first := fetched(t, local(), source, "")
			second := fetched(t, local(), source, first.Validator)
			if !second.NotModified || second.Validator != first.Validator || header != "" && sent != 1 {
				t.Errorf("%+v, sent %d times", second, sent)
			}
			if header == "Etag" && first.Revision != tag || header == "" && !strings.HasPrefix(first.Revision, "sha256:") {
				t.Error(first.Revision)
			}
			body, tag = "kind: b\n", strings.Replace(strings.Replace(tag, "1", "2", 1), "07:28", "07:29", 1)
			if third := fetched(t, local(), source, first.Validator); third.NotModified || third.Digest == first.Digest {
				t.Errorf("%+v", third)
			}
		})
	}
}

func TestSHA256(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("kind: a\n"))
	s := webSource(serveBytes(t, []byte("kind: a\n")))
	s.Spec.HTTP.SHA256 = hex.EncodeToString(sum[:])
	first := fetched(t, local(), s, "")
	s.Spec.HTTP.URL = strings.Replace(s.Spec.HTTP.URL, "127.0.0.1", "127.0.0.1", 1)
	if r := fetched(t, New(Options{}), s, first.Validator); !r.NotModified {
		t.Error("a file with a checksum is fetched again")
	}

	s.Spec.HTTP.SHA256 = strings.Repeat("0", 64)
	_, err := local().Fetch(t.Context(), s, "")
	checkError(t, err, true, "the SHA-256 of the file differs from http.sha256.")
	if strings.Contains(err.Error(), hex.EncodeToString(sum[:8])) {
		t.Errorf("the digest of a server's answer is in a message: %v", err)
	}
}

// bomb is a tar archive of a file of zeros, compressed a thousand to one.
func bomb(t *testing.T, mebibytes int) []byte {
	t.Helper()
	var header bytes.Buffer
	w := tar.NewWriter(&header)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "x.bin", Typeflag: tar.TypeReg, Size: int64(mebibytes) << 20}))
	return append(gzipped(header.Bytes()), bytes.Repeat(gzipped(make([]byte, 1<<20)), mebibytes)...)
}

func TestArchiveBombs(t *testing.T) {
	t.Parallel()
	large := strings.Repeat(" ", limits.FileBytes+1)
	for _, test := range []struct {
		name string
		body []byte
		text string
	}{
		{"decompresses to 1 GiB", bomb(t, 1025), fmt.Sprintf("limit exceeded: there are more than %d bytes unpacked. Leave out files that do not belong to it.", int64(limits.UnpackedBytes))},
		{"one large file", gzipped(tarOf(t, map[string]string{"a.yaml": large})), fmt.Sprintf(`entry "a.yaml": the file has %d bytes; the limit is %d`, len(large), limits.FileBytes)},
		{"all files together", gzipped(tarOf(t, map[string]string{"a.yaml": large[2:], "b.yaml": large[2:], "c.yaml": large[2:], "d.yaml": large[2:], "e.yaml": large[2:]})), fmt.Sprintf("the files have more than %d bytes. Leave out files", limits.RepositoryBytes)},
		{"one large document", gzipped([]byte(large)), fmt.Sprintf("the file has more than %d bytes", limits.FileBytes)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := local().Fetch(t.Context(), webSource(serveBytes(t, test.body)), "")
			checkError(t, err, true, test.text)
		})
	}
}

func TestWebServerErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		handle    http.HandlerFunc
		permanent bool
		text      string
	}{
		{"404", http.NotFound, true, "the server 127.0.0.1 answered 404 Not Found. Check the URL"},
		{"401", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, true, "answered 401 Unauthorized. Check the Secret"},
		{"503", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, false, "answered 503 Service Unavailable"},
		{"429", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, false, "answered 429 Too Many Requests"},
		{"304 to nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, true, "answered 304"},
		{"breaks off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, "EOF"},
		{"too long", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(int64(limits.DownloadBytes)+1))
		}, true, fmt.Sprintf("the file has %d bytes; the limit is %d", limits.DownloadBytes+1, limits.DownloadBytes)},
		{"redirects for ever", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, true, fmt.Sprintf("127.0.0.1:PORT redirects more than %d times", limits.Redirects)},
		{"redirects to a file", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, true, `redirects to the scheme "file", which is not https`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := serveWeb(t, httptest.NewServer, test.handle)
			_, err := local().Fetch(t.Context(), webSource(s.URL+"/x.yaml?signature=geheim"), "")
			u, _ := url.Parse(s.URL)
			checkError(t, err, test.permanent, strings.Replace(test.text, "PORT", u.Port(), 1), "http: "+s.URL+"/x.yaml?…: ")
			if strings.Contains(err.Error(), "geheim") {
				t.Error(err)
			}
		})
	}
}

// No URL, name or redirect leads to the manager's own pod, its node, or a service of the cloud.
func TestLocalAddressesAreRefused(t *testing.T) {
	t.Parallel()
	reached := false
	s := serveWeb(t, httptest.NewServer, func(http.ResponseWriter, *http.Request) { reached = true })
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	const remedy = ", which sources may not be fetched from. If that is intended, start the manager with --allow-local-sources."
	for _, test := range []struct{ address, text string }{
		{s.URL, "127.0.0.1 is a loopback or link-local address" + remedy},
		{"http://localhost" + port + "/x", "localhost is at the loopback or link-local address "},
		{"http://127.1.2.3/", "127.1.2.3 is a loopback or link-local address" + remedy},
		{"http://[::1]" + port, "::1 is a loopback or link-local address" + remedy},
		{"http://[::ffff:127.0.0.1]" + port, "is at the loopback or link-local address 127.0.0.1" + remedy},
		{"http://169.254.169.254/latest/meta-data/", "169.254.169.254 is a loopback or link-local address" + remedy},
		{"http://[fe80::1]/", "fe80::1 is a loopback or link-local address" + remedy},
		{"http://[fd00:ec2::254]/", "fd00:ec2::254 is a loopback or link-local address" + remedy},
		{"http://0.0.0.0" + port, "0.0.0.0 is a loopback or link-local address" + remedy},
		{"http://2130706433" + port, ""}, // the resolver decides whether it is a name or the loopback address
	} {
		_, err := New(Options{}).Fetch(t.Context(), webSource(test.address), "")
		checkError(t, err, test.text != "", test.text)
	}

	if reached {
		t.Error("the server was reached")
	}
}

// A source of a namespace reaches private addresses only if a flag permits them; a source of the
// cluster always does.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	// This context makes a permitted request fail before it connects.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	git := Source{Spec: corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: "https://10.0.0.1/x"}}}
	for _, test := range []struct {
		source    Source
		namespace string
		flag      string
		refused   bool
	}{
		{webSource("http://10.0.0.1/x"), "team", "", true},
		{webSource("http://[fd00::1]/x"), "team", "10.0.0.0/8", true},
		{webSource("http://[64:ff9b::a00:1]/x"), "team", "", true},
		{webSource("http://[2002:a00:1::]/x"), "team", "", true},
		{git, "team", "", true},
		{webSource("http://10.0.0.1/x"), "team", "10.0.0.0/8", false},
		{webSource("http://10.0.0.1/x"), "", "", false},
		{git, "", "", false},
	} {
		networks, err := outbound.ParseNetworks(test.flag)
		require.NoError(t, err)
		f := New(Options{Policy: outbound.Policy{Private: networks}})
		test.source.Namespace = test.namespace
		ctx := t.Context()
		if !test.refused {
			ctx = over
		}
		_, err = f.Fetch(ctx, test.source, "")
		if test.refused {
			checkError(t, err, true, "private address", "which sources may not be fetched from. "+outbound.PrivateRemedy)
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// Redirects are checked like the URL itself, with and without a proxy.
func TestRedirectsToLocalAddresses(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"http://127.0.0.2:1/", "http://169.254.169.254/latest/", "http://[fe80::1]/", "http://[::1]:1/"} {
		// The proxy represents a remote server.
		proxy := serveWeb(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "packages.example", r.URL.Host, fmt.Sprintf("%s is requested", r.URL))
			http.Redirect(w, r, target+"?token=geheim", http.StatusFound)
		})
		proxyURL, _ := url.Parse(proxy.URL)
		f := New(Options{Proxy: func(r *http.Request) (*url.URL, error) {
			if r.URL.Hostname() == "packages.example" {
				return proxyURL, nil
			}
			return nil, nil
		}})
		_, err := f.Fetch(t.Context(), webSource("http://packages.example/r.yaml"), "")
		host := strings.Trim(strings.TrimPrefix(target, "http://"), "/")
		checkError(t, err, true, "http: http://packages.example/r.yaml: ", "is a loopback or link-local address, which sources may not be fetched from. If that is intended, start the manager with --allow-local-sources.")
		if strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// Credentials are sent only to the server of the URL, only by https, and do not appear in messages.
func TestCredentials(t *testing.T) {
	t.Parallel()
	leaked := ""
	elsewhere := serveWeb(t, httptest.NewTLSServer, func(w http.ResponseWriter, r *http.Request) {
		leaked += r.Header.Get("Authorization") + r.Header.Get("Referer")
		_, _ = io.WriteString(w, "kind: x\n")
	})
	var got string
	s := serveWeb(t, httptest.NewTLSServer, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case "/etag":
			w.Header().Set("ETag", `"`+got+`"`)
			w.Header().Set("Last-Modified", "geheim12")
			_, _ = io.WriteString(w, "kind: x\n")
		case "/fails":
			w.Header().Set("Location", "http://user:geheim12@x/%zz"+got)
			w.WriteHeader(http.StatusFound)
		default:
			_, _ = io.WriteString(w, "kind: x\n")
		}
	})

	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	source := func(path string) Source {
		return withSecret(webSource(s.URL+path), map[string]string{"username": "u", "password": "geheim12\n", "ca.crt": ca})
	}

	for _, path := range []string{"/x.yaml", "/redirect"} {
		if _, err := local().Fetch(t.Context(), source(path), ""); err != nil || got != "Basic dTpnZWhlaW0xMg==" || leaked != "" {
			t.Errorf("%s: %v, got %q, leaked %q", path, err, got, leaked)
		}
	}

	_, err := local().Fetch(t.Context(), source("/fails"), "")
	if err == nil || strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "dTpn") {
		t.Error(err)
	}

	// A server can repeat the credentials that it received.
	r := fetched(t, local(), source("/etag"), "")
	if text := r.Revision + r.Validator; strings.Contains(text, "geheim") || strings.Contains(text, "dTpn") {
		t.Error(text)
	}

	token := withSecret(webSource(s.URL), map[string]string{"token": "geheim12\n", "ca.crt": ca})
	if _, err := local().Fetch(t.Context(), token, ""); err != nil || got != "Bearer geheim12" {
		t.Errorf("%v, got %q", err, got)
	}
}

func TestCredentialErrors(t *testing.T) {
	t.Parallel()
	s := serveWeb(t, httptest.NewTLSServer, func(http.ResponseWriter, *http.Request) {})
	for _, test := range []struct {
		source Source
		text   string
	}{
		{webSource("https://user:geheim@host.example/x"), "http.url contains credentials. Put them into a Secret, and name it in secretRef."},
		{webSource("https://host.example/x%zz?geheim"), "http.url is not a URL"},
		{webSource("ftp://host.example/x"), `http.url has the scheme "ftp"`},
		{withSecret(webSource("http://host.example/x"), map[string]string{"password": "geheim"}), `http: the credentials of the Secret "login" would be sent by plain HTTP. Use https.`},
		{withSecret(webSource("https://host.example/x"), map[string]string{"token": "geheim\nX: y"}), `http.secretRef: the token of the Secret "login" has characters that no header may have`},
		{withSecret(webSource("https://host.example/x"), map[string]string{"token": "geheim", "password": "geheim"}), "has both token and password"},
		{withSecret(webSource("https://host.example/x"), map[string]string{"ca.crt": "geheim"}), `the key ca.crt of the Secret "login" has no certificate`},
		{webSource(s.URL), "certificate signed by unknown authority. Put the certificate authority into the key ca.crt"},
	} {
		f := New(Options{})
		if test.source.Spec.HTTP.URL == s.URL {
			f = local()
		}
		_, err := f.Fetch(t.Context(), test.source, "")
		checkError(t, err, true, test.text)
		if strings.Contains(err.Error(), "geheim") {
			t.Error(err)
		}
	}

	missing := withSecret(webSource(s.URL), nil)
	missing.Secrets = nil
	_, err := New(Options{}).Fetch(t.Context(), missing, "")
	checkError(t, err, true, `http.secretRef: there is no Secret "login".`)
}
