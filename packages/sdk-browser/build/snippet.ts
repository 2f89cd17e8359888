/**
 * What a page pastes into its head: it loads the script, checked by its hash, and keeps calls until
 * it is there. `{{host}}` and `{{key}}` are for whoever shows it to fill in. `arguments` and `var`
 * because it runs as it is written, in every browser.
 */
export function snippetOf(version: string, integrity: string) {
  const loader = [
    '!function(w,d,n,s,l){if(w[n])return;l=w[n]={q:[]};',
    '"init identify reset stop optIn optOut".split(" ").forEach(function(m){',
    'l[m]=function(){l.q.push([m,arguments])}});',
    's=d.createElement("script");s.async=1;s.crossOrigin="anonymous";',
    `s.integrity="${integrity}";s.nonce=(d.currentScript||s).nonce;`,
    `s.src="{{host}}/sdk/${version}/lethe.js";d.head.appendChild(s)`,
    '}(window,document,"lethe")',
  ]
  return `<script>\n${loader.join('')}\nlethe.init("{{key}}")\n</script>\n`
}
