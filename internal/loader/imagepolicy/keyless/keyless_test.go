package keyless_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/imagepolicy/keyless"
	"lockstep.run/lockstep/internal/testing/signed"
)

var digest = "sha256:" + strings.Repeat("1", 64)

func write(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func token(t *testing.T, text string) keyless.Token {
	t.Helper()
	read, err := keyless.ReadToken("-", strings.NewReader(text+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func services(t *testing.T, config []byte) *keyless.Services {
	t.Helper()
	read, err := keyless.ReadServices(write(t, config))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// A signature by a token is one of its identity, and of no other.
func TestSign(t *testing.T) {
	t.Parallel()
	all := signed.NewServices(t, nil)
	for name, tc := range map[string]struct {
		log               uint32
		stamps, ignoreLog bool
		reason            imagepolicy.Reason
	}{
		"log and timestamps":              {log: 1, stamps: true},
		"log of version 2 and timestamps": {log: 2, stamps: true},
		"log":                             {log: 1},
		"timestamps":                      {stamps: true, ignoreLog: true},
		"timestamps, where a log entry is needed": {stamps: true, reason: imagepolicy.ReasonSignatureInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signature, err := services(t, all.Config(tc.log, tc.stamps)).Sign(t.Context(), token(t, signed.Token(signed.Subject)), digest)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := signature.Identity(), signed.Subject+" ("+signed.Issuer+")"; got != want {
				t.Errorf("signed as %s, want %s", got, want)
			}
			for identity, want := range map[imagepolicy.Identity]imagepolicy.Reason{
				{Issuer: signed.Issuer, Subject: signed.Subject}:                  "",
				{Issuer: signed.Issuer, Subject: "eve@example.com"}:               imagepolicy.ReasonIdentityMismatch,
				{Issuer: "https://accounts.example.org", Subject: signed.Subject}: imagepolicy.ReasonIdentityMismatch,
			} {
				if tc.reason != "" {
					want = tc.reason
				}
				authority := imagepolicy.Keyless("release", []imagepolicy.Identity{identity}, all.Root(), tc.ignoreLog)
				verification := &imagepolicy.Verification{Authorities: []imagepolicy.Authority{authority}}
				check, refusal := verification.Check(digest, time.Now())
				if refusal != nil {
					t.Fatal(refusal)
				}
				check.Bundle(signature.Bundle)
				if _, refusal = check.Result(0); (refusal == nil) != (want == "") || refusal != nil && refusal.Reason != want {
					t.Errorf("%+v: %v, want %q", identity, refusal, want)
				}
			}
		})
	}
}

// endless answers without an end, and counts the bytes.
func endless(sent *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `"`)
		junk := bytes.Repeat([]byte("x"), 64<<10)
		for sent.Load() < 100<<20 {
			n, err := w.Write(junk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
}

func answer(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, text)
	}
}

// What the services answer is refused in bounded memory, and no message has the token, whatever they repeat.
func TestHostileServices(t *testing.T) {
	t.Parallel()
	good := signed.Token(signed.Subject)
	other := signed.NewServices(t, nil)
	var sent [4]atomic.Int64
	for name, tc := range map[string]struct {
		token, path string
		handler     http.HandlerFunc
		want        string
	}{
		"a token that is refused":        {token: signed.ForgedToken(signed.Subject), want: "There was an error processing the identity token"},
		"the token is repeated":          {path: signed.CertificatePath, handler: echo(func(s string) string { return s }), want: "returned 400"},
		"a part of it is repeated":       {path: signed.CertificatePath, handler: echo(func(s string) string { return s[len(s)/4 : len(s)-3] }), want: "returned 400"},
		"a part in another word":         {path: signed.CertificatePath, handler: echo(func(s string) string { return "n" + s[len(s)/4:len(s)/2] + "n" }), want: "returned 400"},
		"a certificate that is none":     {path: signed.CertificatePath, handler: answer(200, `{"signedCertificateEmbeddedSct":{"chain":{"certificates":["x"]}}}`), want: "unable to parse"},
		"no certificate":                 {path: signed.CertificatePath, handler: answer(200, `{}`), want: "no certificates"},
		"text for a certificate":         {path: signed.CertificatePath, handler: answer(200, "<html>"), want: "invalid character"},
		"a certificate of another key":   {path: signed.CertificatePath, handler: stranger(other), want: "is of another key"},
		"no end of a certificate":        {path: signed.CertificatePath, handler: endless(&sent[0]), want: "201"},
		"an authority that leads away":   {path: signed.CertificatePath, handler: http.RedirectHandler(other.URL+signed.CertificatePath, http.StatusTemporaryRedirect).ServeHTTP, want: "it answered 307"},
		"an authority that fails":        {path: signed.CertificatePath, handler: answer(503, good), want: "it answered 503"},
		"a log that fails":               {path: signed.LogPath, handler: answer(500, good), want: "it answered 500"},
		"a log that refuses":             {path: signed.LogPath, handler: answer(400, `{"code":400,"message":"`+good+`"}`), want: "400"},
		"text for a log entry":           {path: signed.LogPath, handler: answer(201, "garbage"), want: "invalid character"},
		"no log entry":                   {path: signed.LogPath, handler: answer(201, `{}`), want: "reading the answers of the services"},
		"a log entry without a proof":    {path: signed.LogPath, handler: answer(201, `{"":{"logID":"00","body":"e30="}}`), want: "reading the answers of the services"},
		"an entry that is there":         {path: signed.LogPath, handler: answer(409, `{}`), want: ""},
		"no end of a log entry":          {path: signed.LogPath, handler: endless(&sent[1]), want: "more than 1048576 bytes"},
		"a log that leads away":          {path: signed.LogPath, handler: http.RedirectHandler(other.URL+signed.LogPath, http.StatusTemporaryRedirect).ServeHTTP, want: "it answered 307"},
		"one of version 2":               {path: signed.NextLogPath, handler: http.RedirectHandler(other.URL+signed.NextLogPath, http.StatusTemporaryRedirect).ServeHTTP, want: "it answered 307"},
		"one that refuses":               {path: signed.NextLogPath, handler: answer(400, good), want: "it answered 400"},
		"one with a large header":        {path: signed.NextLogPath, handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 100<<10)) }, want: "header"},
		"text of a log of version 2":     {path: signed.NextLogPath, handler: answer(201, "garbage"), want: "syntax error"},
		"nothing of a log of version 2":  {path: signed.NextLogPath, handler: answer(201, "{}"), want: ""},
		"no end of a log of version 2":   {path: signed.NextLogPath, handler: endless(&sent[3]), want: "more than 1048576 bytes"},
		"text for a timestamp":           {path: signed.StampPath, handler: answer(200, "garbage"), want: "asn1"},
		"no end of a timestamp":          {path: signed.StampPath, handler: endless(&sent[2]), want: ""},
		"a header of a hundred kilobyte": {path: signed.StampPath, handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 100<<10)) }, want: "header"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := signed.NewServices(t, map[string]http.HandlerFunc{tc.path: tc.handler})
			text, version := tc.token, uint32(1)
			if tc.path == signed.NextLogPath {
				version = 2
			}
			if text == "" {
				text = good
			}
			signature, err := services(t, of.Config(version, true)).Sign(t.Context(), token(t, text), digest)
			if err == nil || signature != nil {
				t.Fatal("it is signed")
			}
			message := err.Error()
			if !strings.Contains(message, tc.want) || len(message) > 2*limits.RegistryErrorBytes {
				t.Errorf("%s, want …%s", message, tc.want)
			}
			for word := range strings.SplitSeq(text, ".") {
				for ; len(word) >= 16; word = word[8:] {
					if strings.Contains(message, word[:16]) {
						t.Fatalf("a part of the token is in %s", message)
					}
				}
			}
		})
	}
	t.Cleanup(func() {
		for i := range sent {
			if n := sent[i].Load(); n > 32<<20 {
				t.Errorf("service %d sent %d bytes before it was left", i, n)
			}
		}
	})
}

// echo refuses with a part of the token in the message.
func echo(of func(string) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "invalid token %q (%s)", of(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")), r.Header.Get("Authorization"))
	}
}

// stranger certifies the key of an attacker.
func stranger(of *signed.Services) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, body, err := of.Certificate(private.Public(), signed.Subject, signed.Issuer)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, limits.SigningAnswerBytes))
		_, _ = w.Write(body)
	}
}

// A service that does not answer holds a signature up until its context ends, wherever it stops.
func TestHangingServices(t *testing.T) {
	t.Parallel()
	for _, path := range []string{signed.CertificatePath, signed.LogPath, signed.NextLogPath, signed.StampPath} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", path, begun), func(t *testing.T) {
				t.Parallel()
				gone := errors.New("the user left")
				ctx, cancel := context.WithCancelCause(t.Context())
				of := signed.NewServices(t, map[string]http.HandlerFunc{path: func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, limits.SigningAnswerBytes))
					if begun {
						w.WriteHeader(http.StatusCreated)
						_ = http.NewResponseController(w).Flush()
					}
					cancel(gone)
					<-r.Context().Done()
				}})
				version := uint32(1)
				if path == signed.NextLogPath {
					version = 2
				}
				_, err := services(t, of.Config(version, true)).Sign(ctx, token(t, signed.Token(signed.Subject)), digest)
				if !errors.Is(err, gone) {
					t.Errorf("%v, want %v", err, gone)
				}
			})
		}
	}
}

// A signing config that would disclose the token, or make signatures that expire, is refused.
func TestServicesRefusals(t *testing.T) {
	t.Parallel()
	const head = `{"mediaType":"application/vnd.dev.sigstore.signingconfig.v0.2+json",`
	const authority = `"caUrls":[{"url":"https://fulcio.example.com","majorApiVersion":1}]`
	for name, tc := range map[string]struct{ config, want string }{
		"text":                 {"garbage", "as cosign signing-config create makes them"},
		"another file":         {`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`, "it is none of application/vnd.dev.sigstore.signingconfig"},
		"no authority":         {head + `"tsaUrls":[]}`, "caUrls: no matching service"},
		"plain HTTP":           {head + `"caUrls":[{"url":"http://user:password@fulcio.example.com","majorApiVersion":1}],"rekorTlogUrls":[{"url":"https://rekor.example.com","majorApiVersion":1}],"rekorTlogConfig":{"selector":"ANY"}}`, `"http://…@fulcio.example.com" is no URL of https`},
		"no URL":               {head + authority + `,"tsaUrls":[{"url":"file:///etc/passwd","majorApiVersion":1}],"tsaConfig":{"selector":"ANY"}}`, "is no URL of https"},
		"no time":              {head + authority + `}`, "it has neither a log of version 1"},
		"no time of version 2": {head + authority + `,"rekorTlogUrls":[{"url":"https://rekor.example.com","majorApiVersion":2}],"rekorTlogConfig":{"selector":"ANY"}}`, "it has neither a log of version 1"},
		"no selector":          {head + authority + `,"rekorTlogUrls":[{"url":"https://rekor.example.com","majorApiVersion":1}]}`, "rekorTlogUrls: invalid service selector"},
		"expired":              {head + authority + `,"tsaUrls":[{"url":"https://tsa.example.com","majorApiVersion":1,"validFor":{"start":"2020-01-01T00:00:00Z","end":"2021-01-01T00:00:00Z"}}],"tsaConfig":{"selector":"ANY"}}`, "tsaUrls: no matching services"},
		"a large file":         {head + strings.Repeat(" ", limits.SigningConfigBytes) + "}", "it has more than 1048576 bytes"},
	} {
		if _, err := keyless.ReadServices(write(t, []byte(tc.config))); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want …%s", name, err, tc.want)
		}
	}
	if _, err := keyless.ReadServices("missing.json"); err == nil || !strings.HasPrefix(err.Error(), "read the signing config missing.json: ") {
		t.Errorf("no file: %v", err)
	}
	if _, err := keyless.ReadServices(""); err != nil {
		t.Error(err)
	}
}

// A token is a file's content, and in no text: neither where it is written in the place of the file's name, nor where it is printed.
func TestToken(t *testing.T) {
	t.Parallel()
	text := signed.Token(signed.Subject)
	for name, tc := range map[string]struct {
		file string
		want string
	}{
		"the token for its file": {text, "the name of a file is expected"},
		"a folder":               {t.TempDir(), "read the identity token"},
		"a large file":           {write(t, make([]byte, limits.IdentityTokenBytes+1)), "it has more than 65536 bytes"},
		"nothing":                {write(t, nil), "is no JSON web token"},
		"two tokens":             {write(t, []byte(text+"\n"+text)), "is no JSON web token"},
		"a header":               {write(t, []byte(text+"\r\nX-Other: 1")), "is no JSON web token"},
	} {
		if _, err := keyless.ReadToken(tc.file, strings.NewReader("")); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), text[:16]) {
			t.Errorf("%s: %v, want …%s", name, err, tc.want)
		}
	}
	read, err := keyless.ReadToken(write(t, []byte(text+"\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%v %s %#v %+v", read, read, read, read); strings.Contains(got, text[:16]) {
		t.Errorf("it is printed as %s", got)
	}
}
