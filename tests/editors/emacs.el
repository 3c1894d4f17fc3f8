;;; emacs.el --- What a user does in Emacs, as scenarios for test_emacs.py  -*- lexical-binding: t -*-

;; Each scenario returns what the user saw.  Questions are answered by the lines of the standard input, as
;; `completing-read' does without a terminal; a beginning of a choice is enough, and the line C-g stands for that key.

(require 'cl-lib)
(require 'json)

(defconst limit 10 "Seconds that anything may take.")

(defvar asked nil "The questions, as they were put to the user, the latest first.")

(setq completing-read-function
      (lambda (prompt choices &rest more)
        (push `(:prompt ,prompt :titles ,(vconcat (all-completions "" choices))) asked)
        (let ((answer (apply #'completing-read-default prompt choices more)))
          (if (equal answer "C-g") (signal 'quit nil) (or (car (all-completions answer choices)) answer)))))

(defmacro wait-for (what &rest condition)
  "Let Emacs work until CONDITION holds; WHAT is told where it never does."
  (declare (indent 1))
  `(with-timeout (limit (error "Waited in vain for %s" ,what))
     (while (not (progn ,@condition))
       (accept-process-output nil 0.02))))

(defvar messages nil "What was said in the echo area, the latest first.")
(advice-add 'message :before (lambda (text &rest values) (when text (push (apply #'format text values) messages))))

(defun wait-for-message (text)
  (wait-for text (cl-find-if (lambda (message) (string-search text message)) messages)))

(defun wait-for-progress (text)
  (wait-for text (and agent-lsp--progress (string-search text agent-lsp--progress))))

(defun diagnostics ()
  (vconcat (mapcar (lambda (each) (line-number-at-pos (flymake-diagnostic-beg each))) (flymake-diagnostics))))

(defun press-undo ()
  (undo-boundary) ; which Emacs sets after each command
  (undo))

(defun scenario-questions ()
  (let (allowed refused)
    (agent-lsp-run-region (line-beginning-position 2) (line-end-position 2) "fix this")
    (wait-for-message "Agent: Fixed.")
    (wait-for "the change in the buffer" (string-search "number * 2" (buffer-string)))
    (setq allowed `( :text ,(buffer-string)
                     :modified ,(if (buffer-modified-p) t :json-false)
                     :change ,(with-current-buffer (cl-find ".diff" (buffer-list) :key #'buffer-name :test #'string-search)
                                (buffer-string))))
    (agent-lsp-run "spoil it")
    (wait-for-message "Agent: Not done.")
    (setq refused (buffer-string))
    (agent-lsp-run "spoil it again")
    (wait-for-progress "waiting for your answer")
    (agent-lsp-approvals)
    (wait-for-message "Agent: Still not done.")
    `(:allowed ,allowed :refused ,refused)))

(defun answer-at (prompt ending &rest lines)
  "Run a PROMPT, leave its question waiting, and answer it at LINES, until a message with the ENDING."
  (let ((before (length asked))
        seen)
    (agent-lsp-run prompt)
    (wait-for "the question" (> (length asked) before))
    (wait-for "the lines that it is about" (= (length lines) (length (flymake-diagnostics))))
    (setq seen (diagnostics))
    (dolist (line lines)
      (goto-char (point-min))
      (forward-line (1- line))
      (setq before (length asked))
      (agent-lsp-actions)
      (wait-for "the actions" (> (length asked) before)))
    (wait-for-message ending)
    (wait-for "no diagnostic" (not (flymake-diagnostics)))
    seen))

(defun scenario-actions ()
  (let* ((last (line-number-at-pos (1- (point-max))))
         (parts (answer-at "fix it and raise the limit" "Agent: Fixed." 2 last))
         (partly (buffer-string)))
    `( :waiting [,parts ,(answer-at "raise it" "Agent: Raised." last)]
       :partly ,partly
       :whole ,(buffer-string))))

(defun scenario-edit ()
  (let (edited modified)
    (save-excursion
      (goto-char (point-max))
      (insert "# typed\n"))
    (agent-lsp-run "fix this")
    (wait-for-message "Agent: Fixed.")
    (setq edited (buffer-string)
          modified (buffer-modified-p))
    (press-undo)
    `(:edited ,edited :modified ,(if modified t :json-false) :undone ,(buffer-string))))

(defun scenario-validation ()
  (let (red)
    (agent-lsp-trust)
    (wait-for-message "Agent: trusted")
    (agent-lsp-validate)
    (wait-for "a diagnostic" (flymake-diagnostics))
    (setq red (diagnostics))
    (wait-for-message "Agent: Fixed.")
    (wait-for "no diagnostic" (not (flymake-diagnostics)))
    (agent-lsp-status)
    (wait-for-message "validation green")
    `(:red ,red)))

(defun scenario-cancel ()
  (agent-lsp-run "explain")
  (wait-for-progress "answering")
  (agent-lsp-cancel)
  (wait-for-message "Agent: cancelled")
  (agent-lsp-mode "bypass")
  (wait-for-message "Agent: mode bypass")
  (agent-lsp-run "wait")
  (wait-for-progress "running shell")
  '(:running t))

(defun connect-eglot ()
  "Start Eglot with a line in the init file, and nothing of ours; return the server, or nil without Eglot.
In Emacs 28, messages that come together with an awaited answer are left lying until the next one comes."
  (when (require 'eglot nil t)
    (add-to-list 'eglot-server-programs '(python-mode . ("agent-lsp" "serve")))
    (call-interactively #'eglot)
    (wait-for "a server" (eglot-current-server))
    (flymake-start) ; which otherwise waits for the buffer to be displayed
    (let ((server (eglot-current-server)))
      (run-with-timer 0 0.1 (lambda ()
                              (jsonrpc-async-request server :workspace/executeCommand '(:command "agent.status")
                                                     :success-fn #'ignore)))
      server)))

(defun scenario-eglot ()
  (let ((server (connect-eglot))
        red)
    (when server
      (eglot-execute-command server 'agent.trust [])
      (eglot-execute-command server 'agent.trust [(:decision "grant")])
      (eglot-execute-command server 'agent.validate [])
      (wait-for "a diagnostic" (flymake-diagnostics))
      (wait-for "the question what to do" asked)
      (setq red (diagnostics))
      (goto-char (flymake-diagnostic-beg (car (flymake-diagnostics))))
      (let ((last-nonmenu-event t)) ; a key, not the mouse
        (call-interactively #'eglot-code-actions))
      (wait-for-message "Agent: Fixed.")
      (wait-for "no diagnostic" (not (flymake-diagnostics)))
      (eglot-execute-command server 'agent.run [(:prompt "wait" :mode "bypass")])
      (wait-for "the command" (file-exists-p "started"))
      (eglot-execute-command server 'agent.cancel [])
      (wait-for-message "Agent: cancelled"))
    `(:connected ,(if server t :json-false) :red ,red)))

(defun scenario-eglot-edit ()
  (let ((server (connect-eglot))
        edited)
    (when server
      (run-with-timer 0 0.1 #'eglot--signal-textDocument/didChange) ; which Emacs does when it is idle
      (eglot-execute-command server 'agent.run [(:prompt "fix this")])
      (wait-for-message "Agent: Fixed.")
      (setq edited (buffer-string))
      (press-undo))
    `(:connected ,(if server t :json-false) :edited ,edited :undone ,(buffer-string))))

(let ((seen (condition-case problem
                (let ((seen (funcall (intern (concat "scenario-" (getenv "AGENT_TEST_SCENARIO"))))))
                  `(:asked ,(vconcat (reverse asked)) ,@seen))
              (error `(:failure ,(format "%s\n%s" (error-message-string problem)
                                         (string-join (reverse messages) "\n")))))))
  (with-temp-file (getenv "AGENT_TEST_REPORT")
    (insert (json-serialize seen :false-object :json-false))))
(kill-emacs)
