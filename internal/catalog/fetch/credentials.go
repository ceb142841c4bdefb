package fetch

import (
	"encoding/base64"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// credentials are the data of the Secret that a source names.
type credentials struct {
	// field is the field of the source that names the Secret, for messages.
	field, name string
	data        map[string][]byte
}

// credentials returns the data of a Secret, or an error if it does not exist. They are empty
// without a reference.
func (s Source) credentials(field string, ref *corev1alpha1.LocalSecretReference) (credentials, error) {
	if ref == nil {
		return credentials{}, nil
	}
	data, ok := s.Secrets[ref.Name]
	if !ok {
		return credentials{}, missing("Secret", ref.Name, field)
	}
	return credentials{field: field, name: ref.Name, data: data}, nil
}

// text returns the value of a key without the line end that tools append.
func (c credentials) text(key string) string { return strings.TrimRight(string(c.data[key]), "\r\n") }

// authorization returns the header for web servers, or an empty string.
func (c credentials) authorization() (string, error) {
	user, password, token := c.text("username"), c.text("password"), c.text("token")
	switch {
	case token != "" && password != "":
		return "", permanent("Leave one of them out.", "%s: the Secret %q has both token and password", c.field, c.name)
	case token != "":
		if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return "", permanent("Create it again.", "%s: the token of the Secret %q has characters that no header may have", c.field, c.name)
		}
		return "Bearer " + token, nil
	case user != "" || password != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)), nil
	}

	return "", nil
}

// hide removes the credentials from a server's message, which can repeat them.
func (c credentials) hide(text string) string {
	for _, v := range c.values() {
		text = strings.ReplaceAll(text, v, "…")
	}
	return text
}

// values are the texts that messages must not contain.
func (c credentials) values() []string {
	var values []string
	for _, key := range []string{"password", "token"} {
		// Replacing shorter texts would garble messages without hiding much.
		if v := c.text(key); len(v) >= 4 {
			values = append(values, v)
		}
	}
	if v, err := c.authorization(); err == nil && v != "" {
		_, v, _ = strings.Cut(v, " ")
		values = append(values, v)
	}
	return values
}
