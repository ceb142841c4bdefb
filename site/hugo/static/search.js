// Searches the pages by words: an index that is fetched with the first key.
const input = document.getElementById('q')
const results = document.getElementById('results')
const article = document.querySelector('article')
let index

const words = text => text.toLowerCase().split(/[^\p{L}\p{N}_-]+/u).filter(Boolean)

async function load() {
  const pages = await (await fetch(new URL('index.json', import.meta.url))).json()
  return pages.map(page => ({ ...page, inTitle: page.title.toLowerCase(), inText: page.text.toLowerCase() }))
}

// score is 0 where a word is missing: every word has to be on the page.
function score(page, terms) {
  let sum = 0
  for (const term of terms) {
    const times = page.inText.split(term).length - 1
    const named = page.inTitle.includes(term)
    if (!times && !named) return 0
    sum += (named ? 20 : 0) + Math.min(times, 5) + 300 * times / (page.inText.length + 3000)
  }
  return sum
}

function excerpt(page, terms) {
  const at = Math.max(0, page.inText.indexOf(terms[0]))
  const from = Math.max(0, at - 60)
  return (from > 0 ? '…' : '') + page.text.slice(from, at + 140).replace(/\s+/g, ' ') + '…'
}

function show(found, terms) {
  results.replaceChildren(...found.map(page => {
    const item = document.createElement('li')
    const link = document.createElement('a')
    link.href = new URL(page.url, import.meta.url)
    link.textContent = page.title
    const text = document.createElement('p')
    text.textContent = excerpt(page, terms)
    item.append(link, text)
    return item
  }))
  if (!found.length) {
    const item = document.createElement('li')
    item.textContent = 'No page has all of these words.'
    results.append(item)
  }
}

async function search() {
  const terms = words(input.value)
  results.hidden = !terms.length
  article.hidden = !!terms.length
  if (!terms.length) return
  index ??= load()
  const pages = await index
  if (terms.join() !== words(input.value).join()) return
  const found = pages.map(page => [score(page, terms), page]).filter(([points]) => points)
  found.sort(([a], [b]) => b - a)
  show(found.slice(0, 20).map(([, page]) => page), terms)
}

input.addEventListener('input', search)
input.form.addEventListener('submit', event => {
  event.preventDefault()
  results.querySelector('a')?.click()
})
document.addEventListener('keydown', event => {
  if (event.key === '/' && document.activeElement !== input) {
    event.preventDefault()
    input.focus()
  } else if (event.key === 'Escape') {
    input.value = ''
    search()
  }
})

// The navigation is the same on every page, so the page marks its own link.
for (const link of document.querySelectorAll('nav a')) {
  if (link.pathname === location.pathname) link.setAttribute('aria-current', 'page')
}
