import { fileURLToPath } from 'node:url'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  // The server puts a base path in front, if there is one; files name one another.
  base: './',
  plugins: [react(), tailwindcss()],
  resolve: {
    alias: {
      // Of the contract a page needs methods and URLs; checking by schema is the server's work.
      typebox: file('src/api/typebox-in-pages.ts'),
    },
  },
  build: {
    target: ['chrome123', 'firefox121', 'safari17.5'],
    // Nothing inline: the CSP of the pages allows files of this origin only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { index: file('index.html'), replay: file('replay.html') },
      output: {
        codeSplitting: {
          // Few files for the first load: a browser fetches six at a time without HTTP/2.
          groups: [
            { name: 'vendor', test: /node_modules\/(?:react|react-dom|scheduler|@tanstack)\// },
            {
              name: 'core',
              test: /dashboard\/src\/(?:api|design|shell)\/(?!.*-parts)|packages\/contract\//,
            },
          ],
        },
      },
    },
  },
})
