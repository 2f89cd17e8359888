/**
 * What a page pastes into its head: it loads the script, checked by its hash, and keeps calls until
 * it is there. `{{host}}` and `{{key}}` are filled in by the page that shows it. `arguments` and `var`
 * because it runs as it is written, in every browser. Where the page demands Trusted Types its
 * policy lets addresses of the SDK through and no others; the script goes on with it.
 */
export function snippetOf(version: string, integrity: string) {
  const loader = [
    '!function(w,d,n,u,l,s,t){if(w[n])return;l=w[n]={q:[]};',
    '"init identify reset start stop optIn optOut".split(" ").forEach(function(m){',
    'l[m]=function(){l.q.push([m,arguments])}});l.browserId=function(){};',
    's=d.createElement("script");s.async=1;s.crossOrigin="anonymous";',
    `s.integrity="${integrity}";s.nonce=(d.currentScript||s).nonce;`,
    // Once it has an address, nothing passes but what lies in the same folder.
    't=l.t=(t=w.trustedTypes)&&t.createPolicy(n,{createScriptURL:function(a){',
    'return a.indexOf(s.src.slice(0,-8))?"":a}});',
    's.src=t?t.createScriptURL(u):u;d.head.appendChild(s)',
    `}(window,document,"lethe","{{host}}/sdk/${version}/lethe.js")`,
  ]
  return `<script>\n${loader.join('')}\nlethe.init("{{key}}")\n</script>\n`
}
