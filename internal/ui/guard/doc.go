// Package guard decides which requests a page on a loopback address answers: only requests of one
// browser, which got a code from the terminal.
//
//	request ─► Host ─► Sec-Fetch-Site, Origin ─► method, size ─► / or /enter ─► code ─► cookie
//	                                                          └► /<random>/…  ─► cookie ─► pages
//
// Refused requests, and the check that refuses each:
//
//   - a page of another site whose name leads to 127.0.0.1 (DNS rebinding): Host must be the
//     address itself
//   - forms, scripts, frames and streams of other sites, and of other ports of this machine:
//     Sec-Fetch-Site and Origin of every request, including reads; frame-ancestors
//   - other users of the machine: they have neither the code nor the cookie. Cookies ignore ports,
//     so this one has a random path: a browser sends it to no other server
//   - markup in texts: html/template escapes it, and the Content-Security-Policy only runs scripts
//     of this server
//
// The code is in the fragment of the address, which browsers do not send to servers. It is
// exchanged once.
package guard
