package cli_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
)

func TestWordsOfOtherTools(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"search shop":                               "kubectl package available",
		"-n shop search shop":                       "kubectl package available",
		"--namespace shop search shop":              "kubectl package available",
		"-A search shop":                            "kubectl package available",
		"search repo shop --versions":               "kubectl package available",
		"search -n shop shop":                       "kubectl package available",
		"history shop -n shop":                      "kubectl package rollout history NAME",
		"rollback shop 1 -n shop":                   "kubectl package rollout undo NAME --to-revision N",
		"-n shop rollback shop 1":                   "kubectl package rollout undo NAME --to-revision N",
		"installed list -A":                         "kubectl package list",
		"repository list -n shop":                   "kubectl package repo get",
		"repository -n shop list":                   "kubectl package repo get",
		"repository update stable":                  "kubectl package repo update NAME",
		"repository add stable https://example.com": "kubectl package repo add NAME IMAGE, or --http URL",
		"repository add stable":                     "kubectl package repo add NAME IMAGE, or --http URL",
		"repository add stable --url example.com/r": "kubectl package repo add NAME IMAGE, or --http URL",
		"repository add stable example.com/r -n a":  "kubectl package repo add NAME IMAGE, or --http URL",
		"repo index shop":                           "kubectl package repository build",
		"instal shop":                               `unknown command "instal": Did you mean "install"? See: kubectl package --help`,
		"-n shop instal shop":                       `Did you mean "install"?`,
		"rollout histroy shop":                      `Did you mean "history"?`,
		"bogus":                                     `arguments invalid: unknown command "bogus". See: kubectl package --help`,
		"repo bogus -n shop":                        `unknown command "bogus". See: kubectl package repo --help`,
	} {
		got := clitest.Invoke(t, "", strings.Fields(line)...)
		if got.Code != 1 || !strings.Contains(got.Err, want) || strings.Contains(got.Err, "unknown shorthand") || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%s: %+v, want %s", line, got, want)
		}
	}
	for _, line := range []string{"help", "help install", "completion bash", "__complete install", "--help", "repository --help", "uninstall --help", "-h"} {
		if got := clitest.Invoke(t, "", strings.Fields(line)...); got.Code != 0 {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
