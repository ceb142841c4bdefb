// Package webhooks tells the answers of admission webhooks from those of the API server.
package webhooks
